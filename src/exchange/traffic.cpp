#include "exchange/traffic.h"

#include <algorithm>

#include "exchange/wire.h"

namespace atl {

namespace {

std::int64_t raw_bytes(const Packet& packet) {
    return packet.elements * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t payload_bytes(const Packet& packet) {
    return kPacketPrefixBytes + static_cast<std::int64_t>(packet.body.size());
}

}  // namespace

void TrafficCount::begin(Round round, FragmentId fragment, TimePoint now) {
    Open& open = open_[{round, fragment}];
    if (!open.has_begun) open.begin = now;
    open.has_begun = true;
}

void TrafficCount::sent(const PacketKey& key, const Packet& packet) {
    FragmentTraffic& traffic = open_[{key.round, key.fragment}].traffic;
    traffic.raw_bytes_sent += raw_bytes(packet);
    traffic.payload_bytes_sent += payload_bytes(packet);
}

void TrafficCount::received(const PacketKey& key, const Packet& packet) {
    FragmentTraffic& traffic = open_[{key.round, key.fragment}].traffic;
    traffic.raw_bytes_received += raw_bytes(packet);
    traffic.payload_bytes_received += payload_bytes(packet);
}

void TrafficCount::end(Round round, FragmentId fragment, TimePoint now) {
    Open& open = open_[{round, fragment}];
    if (open.has_begun) open.traffic.seconds = seconds(now - open.begin);
}

RoundTraffic TrafficCount::close(Round round, std::vector<PeerCounters> counters) {
    RoundTraffic closed{.round = round, .peers = counters};
    for (PeerCounters& peer : closed.peers) {
        const auto before = std::ranges::find(before_, peer.site, &PeerCounters::site);
        if (before == before_.end()) continue;
        peer.payload_bytes_sent -= before->payload_bytes_sent;
        peer.payload_bytes_received -= before->payload_bytes_received;
        peer.wire_bytes_sent -= before->wire_bytes_sent;
        peer.wire_bytes_received -= before->wire_bytes_received;
        peer.frames_corrupt -= before->frames_corrupt;
        peer.frames_stale -= before->frames_stale;
    }
    before_ = std::move(counters);
    for (auto& [key, open] : open_) {
        if (key.first != round) continue;
        open.traffic.fragment = key.second;
        closed.seconds = std::max(closed.seconds, open.traffic.seconds);
        closed.fragments.push_back(open.traffic);
    }
    std::erase_if(open_, [&](const auto& entry) { return entry.first.first <= round; });
    return closed;
}

}  // namespace atl
