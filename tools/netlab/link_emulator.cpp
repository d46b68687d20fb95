#include "netlab/link_emulator.h"

#include <algorithm>

namespace atl::netlab {
namespace {

constexpr double kDefaultQueueSeconds = 0.1;
constexpr double kSmallestDefaultQueueBytes = 256 * 1024;

std::chrono::nanoseconds from_seconds(double seconds) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

std::chrono::nanoseconds transmission(double bytes, double mbit_per_s) {
    return from_seconds(bytes * 8 / (mbit_per_s * 1e6));
}

}  // namespace

double LinkOptions::queue_bytes() const {
    if (queue_kib > 0) return queue_kib * 1024;
    return std::max(kSmallestDefaultQueueBytes, rate_mbit_per_s * 1e6 / 8 * kDefaultQueueSeconds);
}

LinkEmulator::LinkEmulator(const LinkOptions& options)
    : options_(options),
      chance_(options.seed, "packet loss"),
      uplink_free_(options.hosts),
      downlink_free_(options.hosts),
      traffic_(options.hosts) {}

std::chrono::nanoseconds LinkEmulator::delay(int from, int to) const {
    const auto pair = options_.pair_delay_ms.find(std::minmax(from, to));
    return from_seconds((pair == options_.pair_delay_ms.end() ? options_.delay_ms : pair->second) / 1000);
}

double LinkEmulator::uplink_mbit_per_s(int host) const {
    const auto own = options_.uplink_mbit_per_s.find(host);
    return own == options_.uplink_mbit_per_s.end() ? options_.rate_mbit_per_s : own->second;
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
    const double rate = uplink_mbit_per_s(from);
    const TimePoint leaves =
        std::max(now, uplink_free_[from]) + transmission(static_cast<double>(packet_bytes), rate);
    if (leaves - now > transmission(options_.queue_bytes(), rate)) {
        ++traffic.dropped_packets;
        return std::nullopt;
    }
    uplink_free_[from] = leaves;
    return leaves + delay(from, to);
}

std::optional<TimePoint> LinkEmulator::receive(int from, int to, std::int64_t packet_bytes, TimePoint now) {
    const double rate = options_.rate_mbit_per_s;
    const TimePoint arrives = std::max(now, downlink_free_[to]);
    if (arrives - now > transmission(options_.queue_bytes(), rate)) {
        ++traffic_.at(from).dropped_packets;
        return std::nullopt;
    }
    downlink_free_[to] = arrives + transmission(static_cast<double>(packet_bytes), rate);
    return arrives;
}

}  // namespace atl::netlab
