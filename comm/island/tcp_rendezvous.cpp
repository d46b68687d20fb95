// Rank 0 collects one message from each rank and answers each with all of them.
#include <ifaddrs.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "comm/island/rendezvous.h"
#include "comm/island/socket.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

constexpr Milliseconds kRetryInterval{20};
constexpr Milliseconds kHelloTimeout{
    2'000};  // a stranger who connects and is silent holds nobody up for longer

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
            if (!wait_readable(listener, deadline, clock_)) {
                std::string missing;
                for (std::int32_t r = 1; r < size_; ++r) {
                    if (!peers[r]) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", r);
                }
                throw CommError(fmt::format("{}: rank {} of {} did not come within {} ms; look at its log",
                                            place(key), missing, size_, timeout.count()));
            }
            Socket peer = accept_from(listener);
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
    return local_port(listen_on(host, 0));
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

std::string address_of_interface(const std::string& interface) {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0)
        throw CommError("[island] can't list network interfaces: " + system_reason());
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
    std::string known;
    for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
        char text[NI_MAXHOST];
        if (interface == entry->ifa_name && ::getnameinfo(entry->ifa_addr, sizeof(sockaddr_in), text,
                                                          sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
            return text;
        }
        known += fmt::format(" {}", entry->ifa_name);
    }
    throw UserError(fmt::format("GLOO_SOCKET_IFNAME: no interface '{}' with an IPv4 address; there are:{}",
                                interface, known));
}

}  // namespace atl
