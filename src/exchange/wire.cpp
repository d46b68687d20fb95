#include "exchange/wire.h"

#include <cstring>

namespace atl {

namespace {

struct WirePrefix {
    std::int32_t origin = 0;
    std::uint32_t reserved = 0;
    std::array<std::byte, kPacketHeaderBytes> header{};
};
static_assert(sizeof(WirePrefix) == kPacketPrefixBytes);

struct WireKey {
    std::int64_t round = 0;
    std::int64_t chunk = 0;
    std::int32_t fragment = 0;
    std::int32_t attempt = 0;
    std::int32_t origin = 0;
    std::uint32_t leg = 0;
};
static_assert(sizeof(WireKey) == 32);

bool is_leg(std::uint32_t leg) {
    return leg <= static_cast<std::uint32_t>(Leg::mean);
}

}  // namespace

std::int64_t packet_payload_bytes(const Codec& codec, std::int64_t elements) {
    return kPacketPrefixBytes + codec.body_bytes(elements);
}

Frame packet_frame(const PacketKey& key, const Packet& packet, SiteId to) {
    Frame frame;
    frame.kind = FrameKind::packet;
    frame.leg = static_cast<std::uint8_t>(key.leg);
    frame.to = to;
    frame.round = key.round;
    frame.fragment = key.fragment;
    frame.attempt = key.attempt;
    frame.chunk = static_cast<std::int32_t>(key.chunk);
    const WirePrefix prefix{key.origin.value(), 0, packet.header};
    frame.prefix.resize(sizeof(prefix));
    std::memcpy(frame.prefix.data(), &prefix, sizeof(prefix));
    frame.body = Payload(packet.owner, packet.body, packet.body_hash);
    return frame;
}

std::optional<ArrivedPacket> arrived_packet(Frame frame) {
    WirePrefix prefix;
    if (frame.kind != FrameKind::packet || frame.prefix.size() != sizeof(prefix) || !is_leg(frame.leg))
        return {};
    std::memcpy(&prefix, frame.prefix.data(), sizeof(prefix));
    ArrivedPacket arrived;
    arrived.key = {static_cast<Leg>(frame.leg), frame.round, frame.fragment, frame.attempt,
                   SiteId(prefix.origin),       frame.chunk};
    arrived.sender = frame.from;
    arrived.header = prefix.header;
    arrived.body = std::move(frame.body);
    return arrived;
}

Frame want_frame(std::span<const PacketKey> keys, SiteId to) {
    std::vector<std::byte> bytes(keys.size() * sizeof(WireKey));
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const PacketKey& key = keys[i];
        const WireKey wire{key.round.value(),   key.chunk,          key.fragment.value(),
                           key.attempt.value(), key.origin.value(), static_cast<std::uint32_t>(key.leg)};
        std::memcpy(bytes.data() + i * sizeof(wire), &wire, sizeof(wire));
    }
    Frame frame;
    frame.kind = FrameKind::want;
    frame.to = to;
    frame.body = Payload::own(std::move(bytes));
    return frame;
}

std::optional<std::vector<PacketKey>> wanted_keys(const Frame& frame) {
    const auto bytes = frame.body.bytes();
    if (frame.kind != FrameKind::want || bytes.size() % sizeof(WireKey) != 0) return {};
    std::vector<PacketKey> keys;
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(WireKey)) {
        WireKey wire;
        std::memcpy(&wire, bytes.data() + at, sizeof(wire));
        if (!is_leg(wire.leg)) return {};
        keys.push_back({static_cast<Leg>(wire.leg), Round(wire.round), FragmentId(wire.fragment),
                        Attempt(wire.attempt), SiteId(wire.origin), wire.chunk});
    }
    return keys;
}

}  // namespace atl
