// How ranks that know only a common place find each other: each brings some bytes under a key and all get
// everybody's, in rank order. Used before there are connections, so it is slow and simple.
//
// Errors: CommError naming the ranks that did not come, the place and the time waited.
// Threads: one call at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"

namespace atl {

class Rendezvous {
  public:
    virtual ~Rendezvous() = default;
    // All `size` ranks call it with the same key, once per key.
    virtual std::vector<std::string> exchange(const std::string& key, std::string_view mine,
                                              Milliseconds timeout) = 0;
};

// Files in a directory all ranks see. It must be fresh for each start of the island: files of an earlier
// start would be taken for live ranks.
std::unique_ptr<Rendezvous> make_file_rendezvous(std::filesystem::path directory, Rank rank,
                                                 std::int32_t size);

// Rank 0 listens on host:port (MASTER_ADDR, MASTER_PORT) during each exchange, the others connect to it.
std::unique_ptr<Rendezvous> make_tcp_rendezvous(std::string host, std::uint16_t port, Rank rank,
                                                std::int32_t size);

// A port of `host`, an address of this machine, that nobody listened on a moment ago.
std::uint16_t free_tcp_port(const std::string& host);

// The address of this machine's end of the route to `host`: what other ranks of one network reach it at.
std::string local_address_towards(const std::string& host, std::uint16_t port);
// The first IPv4 address of a network interface (GLOO_SOCKET_IFNAME); throws UserError when it has none.
std::string address_of_interface(const std::string& interface);

}  // namespace atl
