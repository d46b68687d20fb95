#include "netlab/shaped_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "core/error.h"

namespace atl::netlab {
namespace {

constexpr int kHosts = 2;
constexpr double kBurstSeconds = 250e-6;
constexpr double kLeastBurst = 4'500;      // two packets, and what the bucket counts beyond them
constexpr double kLargestBurst = 256'000;  // no more is needed at any rate
constexpr std::int64_t kLargestPacket = 65'536;
constexpr std::int64_t kHeaders = 2'000;  // what the bucket counts beyond a packet's payload, generously
constexpr double kQueueSeconds = 0.1;
constexpr double kLeastQueue = 8'000'000;  // so that a connection's window never overflows it

void set_kernel(const std::string& name, const std::string& value) {
    std::ofstream setting("/proc/sys/net/ipv4/" + name);
    setting << value << std::flush;
    if (!setting) throw WorldError(fmt::format("[netlab] can't set {} to {}", name, value));
}

// Of the namespace that is visited: the one congestion control that every namespace may choose, which on a link
// without loss fills it, also after a pause.
void make_transfers_alike() {
    set_kernel("tcp_congestion_control", "reno");
    set_kernel("tcp_slow_start_after_idle", "0");
}

}  // namespace

TokenBucket token_bucket(double rate_mbit_per_s) {
    const double bytes_per_second = rate_mbit_per_s * 1e6 / 8;
    const auto burst = static_cast<std::int64_t>(
        std::clamp(bytes_per_second * kBurstSeconds, kLeastBurst, kLargestBurst));
    return {burst, std::min(burst - kHeaders, kLargestPacket),
            static_cast<std::int64_t>(std::max(bytes_per_second * kQueueSeconds, kLeastQueue))};
}

ShapedLink::ShapedLink(const ShapedLinkOptions& options) {
    make_names_private();
    for (int host = 0; host < kHosts; ++host) hosts_.emplace_back(options.prefix + std::to_string(host));
    run_command({"ip", "link", "add", kDevice, "netns", hosts_[0].name(), "type", "veth", "peer", "name",
                 kDevice, "netns", hosts_[1].name()});
    for (int host = 0; host < kHosts; ++host) set_up(host, options);
}

void ShapedLink::set_up(int host, const ShapedLinkOptions& options) {
    const VisitNamespace visit(hosts_[static_cast<std::size_t>(host)]);
    make_transfers_alike();
    if (options.rate_mbit_per_s > 0) {
        const TokenBucket bucket = token_bucket(options.rate_mbit_per_s);
        run_command({"ip", "link", "set", kDevice, "gso_max_size",
                     std::to_string(bucket.largest_packet_bytes)});
        run_command({"tc", "qdisc", "add", "dev", kDevice, "root", "tbf", "rate",
                     fmt::format("{:.0f}bit", options.rate_mbit_per_s * 1e6), "burst",
                     std::to_string(bucket.burst_bytes), "limit", std::to_string(bucket.queue_bytes)});
    }
    bring_up_device(host, options.mtu_bytes);
}

ShapedLink::~ShapedLink() {
    std::vector<std::uint64_t> ids;
    for (const Namespace& host : hosts_) ids.push_back(host.id());
    kill_processes_in(ids);
}

std::vector<std::string> ShapedLink::host_names() const {
    std::vector<std::string> names;
    for (const Namespace& host : hosts_) names.push_back(host.name());
    return names;
}

}  // namespace atl::netlab
