#include "comm/site/tcp_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace atl {

namespace {

constexpr std::uint32_t kOpeningMagic = 0x534C5441;  // "ATLS"
constexpr std::uint32_t kOpeningVersion = 3;
// BBR sends at the rate that it has measured whatever is lost by chance, but it looks for more than it is told to send and
// pauses for a fifth of a second every ten. At a rate that is known CUBIC does neither, where it reaches it: where much is
// lost it does not. Where the system doesn't have one of them, its default or the other remains.
constexpr const char* kMeasuresRate = "bbr";
constexpr const char* kKeepsRate = "cubic";
constexpr double kReached = 0.25;               // of the rate, or it is not the one to keep it
constexpr double kShortestBusySeconds = 0.25;  // that shows it
// The system holds no more than this of what it can't send yet, so that small frames need not wait behind megabytes.
constexpr int kMostUnsentBytes = 1 << 20;
constexpr Milliseconds kConnectSlice{20};

struct WireOpening {
    std::uint32_t magic = kOpeningMagic;
    std::uint32_t version = kOpeningVersion;
    std::int32_t site = 0;
    std::int32_t lane = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t shares_memory = 0;
};
static_assert(sizeof(WireOpening) == 32);

struct Addresses {
    explicit Addresses(const std::string& address, bool to_listen) {
        const std::size_t colon = address.rfind(':');
        if (colon == std::string::npos) return;
        std::string host = address.substr(0, colon);
        if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = to_listen ? AI_PASSIVE : 0;
        const bool everywhere = host == "*" || host.empty();
        if (::getaddrinfo(everywhere ? nullptr : host.c_str(), address.substr(colon + 1).c_str(), &hints,
                          &first) != 0)
            first = nullptr;
    }
    ~Addresses() {
        if (first != nullptr) ::freeaddrinfo(first);
    }
    Addresses(const Addresses&) = delete;
    Addresses& operator=(const Addresses&) = delete;
    addrinfo* first = nullptr;
};

void use_congestion_control(int descriptor, const char* name) {
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name, static_cast<socklen_t>(std::strlen(name)));
}

void configure(int descriptor) {
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsentBytes, sizeof kMostUnsentBytes);
    use_congestion_control(descriptor, kMeasuresRate);
}

bool connect_within(int descriptor, const addrinfo& to, Deadline deadline, const std::atomic<bool>& stop) {
    const SystemClock clock;
    if (::connect(descriptor, to.ai_addr, to.ai_addrlen) == 0) return true;
    if (errno != EINPROGRESS) return false;
    while (!stop && clock.now() < deadline) {
        pollfd entry{descriptor, POLLOUT, 0};
        if (::poll(&entry, 1, static_cast<int>(kConnectSlice.count())) <= 0) continue;
        int error = 0;
        socklen_t length = sizeof error;
        ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
        return error == 0;
    }
    return false;
}

using NameOfEnd = int (*)(int, sockaddr*, socklen_t*);

// Of this end or of the other, "host:port".
std::string address_of(int descriptor, NameOfEnd name_of_end) {
    sockaddr_storage end{};
    socklen_t length = sizeof end;
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    name_of_end(descriptor, reinterpret_cast<sockaddr*>(&end), &length);
    ::getnameinfo(reinterpret_cast<sockaddr*>(&end), length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV);
    return end.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                       : fmt::format("{}:{}", host, port);
}

std::string host_of(std::string address) {
    address.erase(address.rfind(':'));
    if (address.starts_with('[')) address = address.substr(1, address.size() - 2);
    return address;
}

}  // namespace

TcpStream::~TcpStream() {
    ::close(descriptor_);
}

std::optional<StreamOpening> TcpStream::open(const StreamOpening& own, Milliseconds silence) {
    const timeval limit{silence.count() / 1000, silence.count() % 1000 * 1000};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const WireOpening mine{.site = own.site.value(),
                           .lane = own.lane,
                           .incarnation = own.incarnation.value(),
                           .shares_memory = own.shares_memory ? 1U : 0U};
    WireOpening theirs;
    if (!send(std::as_bytes(std::span(&mine, 1)), {})) return {};
    if (!receive(std::as_writable_bytes(std::span(&theirs, 1)))) return {};
    if (theirs.magic != kOpeningMagic || theirs.version != kOpeningVersion) {
        end("who connected is no site of this release");
        return {};
    }
    return StreamOpening{SiteId(theirs.site), theirs.lane, Incarnation(theirs.incarnation),
                         theirs.shares_memory == 1};
}

bool TcpStream::receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        if (!unread_.empty()) {
            const std::size_t count = std::min(bytes.size(), unread_.size());
            std::memcpy(bytes.data(), unread_.data(), count);
            bytes = bytes.subspan(count);
            unread_ = unread_.subspan(count);
        } else if (bytes.size() >= ahead_.size()) {
            const auto count = receive_some(bytes, MSG_WAITALL);
            if (!count) return false;
            bytes = bytes.subspan(*count);
        } else {
            const auto count = receive_some(ahead_, 0);
            if (!count) return false;
            unread_ = std::span(ahead_).first(*count);
        }
    }
    return true;
}

// A receive ends with what has come when nothing more comes for the socket's timeout: nothing at all is silence.
std::optional<std::size_t> TcpStream::receive_some(std::span<std::byte> bytes, int flags) {
    for (;;) {
        const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), flags);
        if (count > 0) return static_cast<std::size_t>(count);
        if (count < 0 && errno == EINTR) continue;
        const bool is_silence = errno == EAGAIN || errno == EWOULDBLOCK;
        end(count == 0 ? "the connection ended" : is_silence ? "no sign of life" : std::strerror(errno));
        return {};
    }
}

bool TcpStream::send(std::span<const std::byte> first, std::span<const std::byte> second) {
    while (!first.empty() || !second.empty()) {
        std::array<iovec, 2> pieces{{{const_cast<std::byte*>(first.data()), first.size()},
                                     {const_cast<std::byte*>(second.data()), second.size()}}};
        msghdr message{};
        message.msg_iov = pieces.data();
        message.msg_iovlen = pieces.size();
        const ssize_t count = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            end(std::strerror(errno));
            return false;
        }
        const std::size_t of_first = std::min(first.size(), static_cast<std::size_t>(count));
        first = first.subspan(of_first);
        second = second.subspan(static_cast<std::size_t>(count) - of_first);
    }
    return true;
}

std::int64_t TcpStream::unacknowledged_bytes() const {
    int bytes = 0;
    return ::ioctl(descriptor_, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

void TcpStream::set_send_rate(double bytes_per_second) {
    const bool is_limited = bytes_per_second > 0;
    const std::uint64_t rate = is_limited ? static_cast<std::uint64_t>(bytes_per_second) : ~std::uint64_t{0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
    const TcpProgress now = tcp_progress(descriptor_);
    const double busy_seconds = now.busy_seconds - limited_since_.busy_seconds;
    const double sent_bytes = now.acknowledged_bytes - limited_since_.acknowledged_bytes;
    if (keeps_rate_ && busy_seconds >= kShortestBusySeconds)
        keeps_rate_ = sent_bytes > kReached * lowest_rate_ * busy_seconds;
    limited_since_ = now;
    // What others leave when they are done is not reached at once.
    if (bytes_per_second < rate_ || rate_ == 0) lowest_rate_ = bytes_per_second;
    rate_ = bytes_per_second;
    use_congestion_control(descriptor_, is_limited && keeps_rate_ ? kKeepsRate : kMeasuresRate);
}

void TcpStream::end(const std::string& why) {
    const std::scoped_lock lock(mutex_);
    if (why_.empty()) why_ = why;
    ::shutdown(descriptor_, SHUT_RDWR);
}

std::string TcpStream::why() const {
    const std::scoped_lock lock(mutex_);
    return why_;
}

std::string TcpStream::local_host() const {
    return host_of(address_of(descriptor_, ::getsockname));
}

bool TcpStream::leads_to_own_host() const {
    return local_host() == host_of(address_of(descriptor_, ::getpeername));
}

std::unique_ptr<TcpStream> dial_tcp(const std::string& address, Milliseconds patience,
                                    const std::atomic<bool>& stop) {
    const SystemClock clock;
    const Deadline deadline = clock.after(patience);
    const Addresses addresses(address, false);
    for (const addrinfo* each = addresses.first; each != nullptr; each = each->ai_next) {
        const int descriptor =
            ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, each->ai_protocol);
        if (descriptor < 0) continue;
        auto stream = std::make_unique<TcpStream>(descriptor);
        configure(descriptor);
        if (!connect_within(descriptor, *each, deadline, stop)) continue;
        ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
        return stream;
    }
    return nullptr;
}

TcpListener::TcpListener(const std::string& address) {
    const Addresses addresses(address, true);
    int error = addresses.first == nullptr ? EADDRNOTAVAIL : 0;
    for (const addrinfo* each = addresses.first; each != nullptr; each = each->ai_next) {
        descriptor_ =
            ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, each->ai_protocol);
        const int on = 1;
        ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(descriptor_, each->ai_addr, each->ai_addrlen) == 0 &&
            ::listen(descriptor_, SOMAXCONN) == 0) {
            address_ = address_of(descriptor_, ::getsockname);
            return;
        }
        error = errno;
        ::close(descriptor_);
    }
    throw UserError(fmt::format("[site transport] can't listen on {}: {}; choose another address or port 0",
                                address, std::strerror(error)));
}

TcpListener::~TcpListener() {
    ::close(descriptor_);
}

std::unique_ptr<TcpStream> TcpListener::accept() const {
    const int descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) return nullptr;
    configure(descriptor);
    return std::make_unique<TcpStream>(descriptor);
}

}  // namespace atl
