// The hosts of a lab: named network namespaces, each with one TUN device as its only way out.
//
// Host i of a lab called `site` is the namespace site<i> with the address 10.77.<i>.1/16 on the device wan0.
// Needs root. Errors: WorldError says which step failed and why.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "netlab/namespaces.h"

namespace atl::netlab {

struct Host {
    std::string name;
    std::string address;
    Descriptor tunnel;  // read: packets that the host sends; write: packets that it receives; never blocks
    std::uint64_t namespace_id;
};

class Hosts {
  public:
    static constexpr int kMaximumCount = 64;

    Hosts(const std::string& prefix, int count, int mtu_bytes);
    ~Hosts();  // kills what still runs on the hosts
    Hosts(const Hosts&) = delete;
    Hosts& operator=(const Hosts&) = delete;

    std::span<const Host> list() const { return hosts_; }

  private:
    std::vector<Host> hosts_;
};

// The index of the host that an IPv4 packet is for; -1 for anything else, which has no way through the lab.
int destination_host(std::span<const std::byte> packet, int host_count);

}  // namespace atl::netlab
