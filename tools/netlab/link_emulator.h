// The links of a lab as arithmetic: when does a packet that host A sends now reach host B, or is it lost? In two steps,
// because packets from hosts that are not equally far or whose queues are not equally long overtake one another on the
// way: a link takes them in the order in which they come to it, never in that in which they were sent.
//
// Every host has one link to a backbone that is never the bottleneck: packets leave it one after another at
// `rate`, spend the one-way delay of their pair of hosts on the way, and enter the other host one after another at
// `rate`. A packet that would wait longer than the queue is deep is dropped, at either end, as a router does.
// Pure but for its own state: packets must be offered in the order of `now`, over both steps. Threads: one. Cost: O(1) a
// packet.
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
    std::map<int, double> uplink_mbit_per_s;              // of hosts that send at another rate

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

    // The time at which the packet comes to its receiver's link, where receive() is to be asked; nothing when it never
    // does.
    std::optional<TimePoint> send(int from, int to, std::int64_t packet_bytes, TimePoint now);
    // The time at which it arrives; nothing when it never does.
    std::optional<TimePoint> receive(int from, int to, std::int64_t packet_bytes, TimePoint now);
    const std::vector<HostTraffic>& traffic() const { return traffic_; }

  private:
    std::chrono::nanoseconds delay(int from, int to) const;
    double uplink_mbit_per_s(int host) const;

    LinkOptions options_;
    RandomStream chance_;
    std::vector<TimePoint> uplink_free_, downlink_free_;
    std::vector<HostTraffic> traffic_;
};

}  // namespace atl::netlab
