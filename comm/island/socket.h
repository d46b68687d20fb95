// Plain TCP for what comes before and beside Gloo: meeting, and noticing that a peer is gone.
//
// A message on the wire is a 64-bit little-endian length and that many bytes, at most 1 MiB. Functions that take
// a deadline return false when it passes or the connection breaks. Threads: one per socket.
#pragma once

#include <netdb.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"

namespace atl {

// Owns a descriptor.
class Socket {
  public:
    explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
    ~Socket();
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

// What a host name stands for; throws CommError when it stands for nothing.
struct AddressList {
    AddressList(const std::string& host, std::uint16_t port, int socket_type);
    ~AddressList() { ::freeaddrinfo(first); }
    AddressList(const AddressList&) = delete;
    AddressList& operator=(const AddressList&) = delete;
    addrinfo* first = nullptr;
};

Socket listen_on(const std::string& host, std::uint16_t port);  // throws CommError
std::uint16_t local_port(const Socket& socket);                 // likewise
Socket accept_from(const Socket& listener);                     // an empty socket when nobody came after all
Socket connect_to(const AddressList& addresses);                // an empty socket when nobody listens

bool wait_readable(const Socket& socket, Deadline deadline, const Clock& clock);
bool send_message(const Socket& socket, std::string_view message, Deadline deadline, const Clock& clock);
bool receive_message(const Socket& socket, std::string& message, Deadline deadline, const Clock& clock);

std::string system_reason();  // of errno

}  // namespace atl
