// Rank 0 collects one message from each rank and answers each with all of them. A message on the wire is a
// 64-bit little-endian length and that many bytes.
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "comm/island/rendezvous.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

constexpr Milliseconds kRetryInterval{20};
constexpr Milliseconds kHelloTimeout{
    2'000};  // a stranger who connects and is silent holds nobody up for longer
constexpr std::uint64_t kMaximumMessageBytes = 1 << 20;

class Socket {
  public:
    explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
    ~Socket() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    int get() const { return descriptor_; }
    explicit operator bool() const { return descriptor_ >= 0; }

  private:
    int descriptor_;
};

struct AddressList {
    AddressList(const std::string& host, std::uint16_t port, int type) {
        addrinfo hints{};
        hints.ai_family = AF_UNSPEC;
        hints.ai_socktype = type;
        const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
        if (error != 0) {
            throw CommError(fmt::format("[island] can't resolve '{}': {}; check MASTER_ADDR", host,
                                        ::gai_strerror(error)));
        }
    }
    ~AddressList() { ::freeaddrinfo(first); }
    AddressList(const AddressList&) = delete;
    AddressList& operator=(const AddressList&) = delete;
    addrinfo* first = nullptr;
};

std::string system_reason() {
    return std::strerror(errno);
}

// Waits until the socket is ready for `events`; false at the deadline.
bool wait_ready(const Socket& socket, short events, Deadline deadline, const Clock& clock) {
    while (true) {
        const auto left = std::chrono::ceil<Milliseconds>(deadline - clock.now());
        if (left.count() <= 0) return false;
        pollfd entry{socket.get(), events, 0};
        const int ready = ::poll(&entry, 1, static_cast<int>(left.count()));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
    }
}

bool send_all(const Socket& socket, std::string_view bytes, Deadline deadline, const Clock& clock) {
    while (!bytes.empty()) {
        if (!wait_ready(socket, POLLOUT, deadline, clock)) return false;
        const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

bool receive_all(const Socket& socket, char* bytes, std::size_t count, Deadline deadline,
                 const Clock& clock) {
    while (count > 0) {
        if (!wait_ready(socket, POLLIN, deadline, clock)) return false;
        const ssize_t received = ::recv(socket.get(), bytes, count, 0);
        if (received <= 0) return false;
        bytes += received;
        count -= static_cast<std::size_t>(received);
    }
    return true;
}

bool send_message(const Socket& socket, std::string_view message, Deadline deadline, const Clock& clock) {
    const std::uint64_t length = message.size();
    std::string framed(reinterpret_cast<const char*>(&length), sizeof length);
    framed += message;
    return send_all(socket, framed, deadline, clock);
}

bool receive_message(const Socket& socket, std::string& message, Deadline deadline, const Clock& clock) {
    std::uint64_t length = 0;
    if (!receive_all(socket, reinterpret_cast<char*>(&length), sizeof length, deadline, clock)) return false;
    if (length > kMaximumMessageBytes) return false;
    message.resize(length);
    return receive_all(socket, message.data(), length, deadline, clock);
}

Socket listen_on(const std::string& host, std::uint16_t port) {
    const AddressList addresses(host, port, SOCK_STREAM);
    for (const addrinfo* entry = addresses.first; entry != nullptr; entry = entry->ai_next) {
        Socket socket(::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol));
        const int on = 1;
        if (!socket) continue;
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(socket.get(), entry->ai_addr, entry->ai_addrlen) != 0) continue;
        if (::listen(socket.get(), SOMAXCONN) == 0) return socket;
    }
    throw CommError(fmt::format("[island] rank 0 can't listen on {}:{}: {}; choose another MASTER_PORT", host,
                                port, system_reason()));
}

Socket connect_to(const AddressList& addresses) {
    for (const addrinfo* entry = addresses.first; entry != nullptr; entry = entry->ai_next) {
        Socket socket(::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol));
        if (socket && ::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0) return socket;
    }
    return Socket();
}

class TcpRendezvous final : public Rendezvous {
  public:
    TcpRendezvous(std::string host, std::uint16_t port, Rank rank, std::int32_t size)
        : host_(std::move(host)), port_(port), rank_(rank), size_(size) {}

    std::vector<std::string> exchange(const std::string& key, std::string_view mine,
                                      Milliseconds timeout) override {
        if (rank_ == Rank(0)) return collect(key, mine, timeout);
        return ask(key, mine, timeout);
    }

  private:
    std::string place(const std::string& key) const {
        return fmt::format("[island] rendezvous '{}' at {}:{}", key, host_, port_);
    }

    std::vector<std::string> collect(const std::string& key, std::string_view mine, Milliseconds timeout) {
        const Deadline deadline = clock_.after(timeout);
        const Socket listener = listen_on(host_, port_);
        std::vector<Socket> peers(size_);
        std::vector<std::string> all(size_);
        all[0] = mine;
        for (std::int32_t come = 1; come < size_;) {
            if (!wait_ready(listener, POLLIN, deadline, clock_)) {
                std::string missing;
                for (std::int32_t r = 1; r < size_; ++r) {
                    if (!peers[r]) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", r);
                }
                throw CommError(fmt::format("{}: rank {} of {} did not come within {} ms; look at its log",
                                            place(key), missing, size_, timeout.count()));
            }
            Socket peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            std::string hello;  // "key rank", then the rank's bytes: a stranger is dropped, not believed
            std::string bytes;
            const Deadline hello_deadline = std::min(deadline, clock_.after(kHelloTimeout));
            if (!peer || !receive_message(peer, hello, hello_deadline, clock_) ||
                !receive_message(peer, bytes, hello_deadline, clock_)) {
                continue;
            }
            for (std::int32_t r = 1; r < size_; ++r) {
                if (hello != fmt::format("{} {}", key, r)) continue;
                if (!peers[r]) ++come;
                peers[r] = std::move(peer);  // a rank that came twice lost its first connection
                all[r] = std::move(bytes);
                break;
            }
        }
        for (std::int32_t r = 1; r < size_; ++r) {
            for (const std::string& message : all) {
                if (!send_message(peers[r], message, deadline, clock_)) {
                    throw CommError(fmt::format("{}: rank {} was lost", place(key), r));
                }
            }
        }
        return all;
    }

    std::vector<std::string> ask(const std::string& key, std::string_view mine, Milliseconds timeout) {
        const Deadline deadline = clock_.after(timeout);
        const AddressList addresses(host_, port_, SOCK_STREAM);
        while (clock_.now() < deadline) {
            const Socket socket = connect_to(addresses);
            std::vector<std::string> all(size_);
            bool complete = socket &&
                            send_message(socket, fmt::format("{} {}", key, rank_), deadline, clock_) &&
                            send_message(socket, mine, deadline, clock_);
            for (std::string& message : all) {
                complete = complete && receive_message(socket, message, deadline, clock_);
            }
            if (complete) return all;
            std::this_thread::sleep_for(kRetryInterval);  // rank 0 may not listen yet
        }
        throw CommError(fmt::format("{}: rank 0 did not answer within {} ms; check MASTER_ADDR and its log",
                                    place(key), timeout.count()));
    }

    std::string host_;
    std::uint16_t port_;
    Rank rank_;
    std::int32_t size_;
    SystemClock clock_;
};

}  // namespace

std::unique_ptr<Rendezvous> make_tcp_rendezvous(std::string host, std::uint16_t port, Rank rank,
                                                std::int32_t size) {
    return std::make_unique<TcpRendezvous>(std::move(host), port, rank, size);
}

std::uint16_t free_tcp_port(const std::string& host) {
    const Socket socket = listen_on(host, 0);
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    char service[NI_MAXSERV];
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0 ||
        ::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, nullptr, 0, service, sizeof service,
                      NI_NUMERICSERV) != 0) {
        throw CommError(fmt::format("[island] no free port on {}: {}", host, system_reason()));
    }
    return static_cast<std::uint16_t>(std::stoi(service));
}

std::string local_address_towards(const std::string& host, std::uint16_t port) {
    const AddressList addresses(host, port, SOCK_DGRAM);
    const Socket socket(::socket(addresses.first->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    char text[NI_MAXHOST];
    // Connecting a datagram socket sends nothing; it only makes the system choose the route.
    if (!socket || ::connect(socket.get(), addresses.first->ai_addr, addresses.first->ai_addrlen) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0 ||
        ::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) != 0) {
        throw CommError(fmt::format("[island] no route to {}:{}: {}", host, port, system_reason()));
    }
    return text;
}

}  // namespace atl
