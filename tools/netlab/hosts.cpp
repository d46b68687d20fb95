#include "netlab/hosts.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>

#include <cstring>

namespace atl::netlab {
namespace {

Descriptor open_tunnel() {
    Descriptor tunnel = open_file("/dev/net/tun", O_RDWR | O_NONBLOCK);
    ifreq request{};
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    std::strncpy(request.ifr_name, kDevice, IFNAMSIZ - 1);
    if (::ioctl(tunnel.number(), TUNSETIFF, &request) != 0) fail("make a TUN device");
    return tunnel;
}

Host make_host(const std::string& prefix, int index, int mtu_bytes) {
    const Namespace place(prefix + std::to_string(index));
    const VisitNamespace visit(place);
    Host host{place.name(), address_of_host(index), open_tunnel(), place.id()};
    bring_up_device(index, mtu_bytes);
    return host;
}

}  // namespace

Hosts::Hosts(const std::string& prefix, int count, int mtu_bytes) {
    make_names_private();
    for (int index = 0; index < count; ++index) hosts_.push_back(make_host(prefix, index, mtu_bytes));
}

Hosts::~Hosts() {
    std::vector<std::uint64_t> ids;
    for (const Host& host : hosts_) ids.push_back(host.namespace_id);
    kill_processes_in(ids);
}

int destination_host(std::span<const std::byte> packet, int host_count) {
    constexpr std::size_t kHeaderBytes = 20, kDestinationOffset = 16;
    if (packet.size() < kHeaderBytes || std::to_integer<int>(packet[0]) >> 4 != 4) return -1;
    const auto octet = [&](int index) { return std::to_integer<int>(packet[kDestinationOffset + index]); };
    if (octet(0) != 10 || octet(1) != 77 || octet(2) >= host_count || octet(3) != 1) return -1;
    return octet(2);
}

}  // namespace atl::netlab
