#include "netlab/link_emulator.h"

#include <algorithm>

namespace atl::netlab {
namespace {

constexpr double kDefaultQueueSeconds = 0.1;
constexpr double kSmallestDefaultQueueBytes = 256 * 1024;

std::chrono::nanoseconds from_seconds(double seconds) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

double LinkOptions::queue_bytes() const {
    if (queue_kib > 0) return queue_kib * 1024;
    return std::max(kSmallestDefaultQueueBytes, rate_mbit_per_s * 1e6 / 8 * kDefaultQueueSeconds);
}

LinkEmulator::LinkEmulator(const LinkOptions& options)
    : options_(options),
      queue_depth_(from_seconds(options.queue_bytes() * 8 / (options.rate_mbit_per_s * 1e6))),
      chance_(options.seed, "packet loss"),
      uplink_free_(options.hosts),
      downlink_free_(options.hosts),
      traffic_(options.hosts) {}

std::chrono::nanoseconds LinkEmulator::delay(int from, int to) const {
    const auto pair = options_.pair_delay_ms.find(std::minmax(from, to));
    return from_seconds((pair == options_.pair_delay_ms.end() ? options_.delay_ms : pair->second) / 1000);
}

std::chrono::nanoseconds LinkEmulator::transmission(std::int64_t bytes) const {
    return from_seconds(static_cast<double>(bytes) * 8 / (options_.rate_mbit_per_s * 1e6));
}

std::optional<TimePoint> LinkEmulator::send(int from, int to, std::int64_t packet_bytes, TimePoint now) {
    HostTraffic& traffic = traffic_.at(from);
    const std::int64_t number = traffic.sent_packets++;
    traffic.sent_bytes += packet_bytes;
    const auto index = static_cast<std::uint64_t>(number * options_.hosts + from);
    if (options_.loss_percent > 0 && chance_.uniform(index) * 100 < options_.loss_percent) {
        ++traffic.lost_packets;
        return std::nullopt;
    }
    const TimePoint leaves = std::max(now, uplink_free_[from]) + transmission(packet_bytes);
    const TimePoint reaches_downlink = leaves + delay(from, to);
    const TimePoint arrives = std::max(reaches_downlink, downlink_free_[to]);
    if (leaves - now > queue_depth_) {
        ++traffic.dropped_packets;
        return std::nullopt;
    }
    uplink_free_[from] = leaves;
    if (arrives - reaches_downlink > queue_depth_) {
        ++traffic.dropped_packets;
        return std::nullopt;
    }
    downlink_free_[to] = arrives + transmission(packet_bytes);
    return arrives;
}

}  // namespace atl::netlab
