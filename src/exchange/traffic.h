// What a round's exchange moved: per peer as its transport counts it, per fragment as packets.
//
// Bytes, seconds. "Raw" is what the same elements are in fp32, "payload" what codec and zstd made of them with the
// packets' headers, "wire" with the frames' as well (TCP/IP's headers and what TCP repeats come on top). Not
// thread-safe.
#pragma once

#include <map>
#include <vector>

#include "codec/packet.h"
#include "comm/site/transport.h"
#include "core/clock.h"
#include "rounds/site_events.h"

namespace atl {

struct FragmentTraffic {
    FragmentId fragment;
    double seconds = 0;  // from the own contribution's first chunk to the commit's arrival
    std::int64_t raw_bytes_sent = 0;
    std::int64_t payload_bytes_sent = 0;
    std::int64_t raw_bytes_received = 0;
    std::int64_t payload_bytes_received = 0;
};

struct RoundTraffic {
    Round round;
    double seconds = 0;               // of the fragment that took longest
    std::vector<PeerCounters> peers;  // what was sent and received since the round before
    std::vector<FragmentTraffic> fragments;
};

class TrafficCount {
  public:
    void begin(Round round, FragmentId fragment, TimePoint now);
    void sent(const PacketKey& key, const Packet& packet);
    void received(const PacketKey& key, const Packet& packet);
    void end(Round round, FragmentId fragment, TimePoint now);  // its commit is here
    // The round is over: what it moved. `counters` are the transport's, which never go back.
    RoundTraffic close(Round round, std::vector<PeerCounters> counters);

  private:
    struct Open {
        FragmentTraffic traffic;
        TimePoint begin{};
        bool has_begun = false;
    };
    using Key = std::pair<Round, FragmentId>;

    std::map<Key, Open> open_;
    std::vector<PeerCounters> before_;
};

}  // namespace atl
