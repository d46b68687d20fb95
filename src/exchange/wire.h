// What the exchange puts into frames: packet keys and lists of them, as FORMAT.md says.
//
// Plain functions. Foreign bytes that make no sense give nothing, never an exception.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "codec/packet.h"
#include "comm/site/frame.h"
#include "rounds/site_events.h"

namespace atl {

inline constexpr std::int64_t kPacketPrefixBytes = 8 + static_cast<std::int64_t>(kPacketHeaderBytes);

// The bytes of a frame's prefix and body that carry one chunk of `elements`, zstd apart.
std::int64_t packet_payload_bytes(const Codec& codec, std::int64_t elements);

Frame packet_frame(const PacketKey& key, const Packet& packet, SiteId to);

// A packet as it came: not looked into yet.
struct ArrivedPacket {
    PacketKey key;
    SiteId sender;
    std::array<std::byte, kPacketHeaderBytes> header{};
    Payload body;
};
std::optional<ArrivedPacket> arrived_packet(Frame frame);

Frame want_frame(std::span<const PacketKey> keys, SiteId to);
std::optional<std::vector<PacketKey>> wanted_keys(const Frame& frame);

}  // namespace atl
