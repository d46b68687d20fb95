#include "comm/island/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

constexpr std::uint64_t kMaximumMessageBytes = 1 << 20;

// Waits until the socket is ready for `events`.
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

}  // namespace

Socket::~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

AddressList::AddressList(const std::string& host, std::uint16_t port, int socket_type) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = socket_type;
    const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
    if (error != 0) {
        throw CommError(
            fmt::format("[island] can't resolve '{}': {}; check MASTER_ADDR", host, ::gai_strerror(error)));
    }
}

std::string system_reason() {
    return std::strerror(errno);
}

bool wait_readable(const Socket& socket, Deadline deadline, const Clock& clock) {
    return wait_ready(socket, POLLIN, deadline, clock);
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
    throw CommError(fmt::format("[island] can't listen on {}:{}: {}; choose another MASTER_PORT", host, port,
                                system_reason()));
}

std::uint16_t local_port(const Socket& socket) {
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    char service[NI_MAXSERV];
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0 ||
        ::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, nullptr, 0, service, sizeof service,
                      NI_NUMERICSERV) != 0) {
        throw CommError(fmt::format("[island] a socket without a port: {}", system_reason()));
    }
    return static_cast<std::uint16_t>(std::stoi(service));
}

Socket accept_from(const Socket& listener) {
    return Socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

Socket connect_to(const AddressList& addresses) {
    for (const addrinfo* entry = addresses.first; entry != nullptr; entry = entry->ai_next) {
        Socket socket(::socket(entry->ai_family, entry->ai_socktype | SOCK_CLOEXEC, entry->ai_protocol));
        if (socket && ::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0) return socket;
    }
    return Socket();
}

}  // namespace atl
