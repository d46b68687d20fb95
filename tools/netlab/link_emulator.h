// The links of a lab as arithmetic: when does a packet that host A sends now reach host B, or is it lost?
//
// Every host has one link to a backbone that is never the bottleneck: packets leave it one after another at
// `rate`, spend the one-way delay of their pair of hosts on the way, and enter the other host one after another at
// `rate`. A packet that would wait longer than the queue is deep is dropped, at either end, as a router does.
// Pure but for its own state: packets must be offered in the order of `now`. Threads: one. Cost: O(1) a packet.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/random.h"

namespace atl::netlab {

struct LinkOptions {
    int hosts = 2;
    double delay_ms = 25;  // one way: half of the round trip
    double rate_mbit_per_s = 100;
    double loss_percent = 0;
    double queue_kib = 0;  // 0 = 100 ms at the rate, at least 256 KiB
    std::uint64_t seed = 1;
    std::map<std::pair<int, int>, double> pair_delay_ms;  // (lower host, higher host) → delay of that pair

    double queue_bytes() const;
};

struct HostTraffic {
    std::int64_t sent_packets = 0;     // that the host gave to its link, lost ones among them
    std::int64_t sent_bytes = 0;       // IP packets with their headers
    std::int64_t lost_packets = 0;     // by chance
    std::int64_t dropped_packets = 0;  // by a full queue
};

class LinkEmulator {
  public:
    explicit LinkEmulator(const LinkOptions& options);

    // The time at which the packet arrives; nothing when it never does.
    std::optional<TimePoint> send(int from, int to, std::int64_t packet_bytes, TimePoint now);
    const std::vector<HostTraffic>& traffic() const { return traffic_; }

  private:
    std::chrono::nanoseconds delay(int from, int to) const;
    std::chrono::nanoseconds transmission(std::int64_t bytes) const;

    LinkOptions options_;
    std::chrono::nanoseconds queue_depth_;
    RandomStream chance_;
    std::vector<TimePoint> uplink_free_, downlink_free_;
    std::vector<HostTraffic> traffic_;
};

}  // namespace atl::netlab
