// A packet: one encoded chunk as it travels, a header of 32 bytes and a body (FORMAT.md). The header covers the
// body by its hash, so the digest of a packet is the digest of its header.
//
// Ownership: bodies are shared and immutable. Threads: packets are values; an encoder or decoder belongs to one
// thread. Errors: foreign bytes that are no good give a reason, never an exception.
// Cost: one pass of the codec, one XXH3-64 pass over the body, zstd level 1 if it is on and a sample shrinks.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "codec/codec.h"
#include "core/buffer_pool.h"
#include "core/hash.h"

namespace atl {

inline constexpr std::size_t kPacketHeaderBytes = 32;

struct Packet {
    std::array<std::byte, kPacketHeaderBytes> header{};
    std::shared_ptr<const void> owner;  // shared: a body lies in send queues and in the store at once
    std::span<const std::byte> body;    // as sent
    std::uint64_t body_hash = 0;        // XXH3-64 of body
    std::int64_t elements = 0;
    bool is_compressed = false;

    Hash128 digest() const { return xxh3_128(header); }
    std::int64_t bytes() const { return static_cast<std::int64_t>(header.size() + body.size()); }
};

class PacketEncoder {
  public:
    // The codec outlives the encoder. `zstd`: compress a body where that saves at least 1/32 of it.
    PacketEncoder(const Codec& codec, bool zstd);
    ~PacketEncoder();
    PacketEncoder(PacketEncoder&&) noexcept;
    PacketEncoder& operator=(PacketEncoder&&) noexcept;

    // Nothing if the codec refuses the values. With an owner, identity bodies are views of `values`.
    std::optional<Packet> encode(std::span<const float> values,
                                 const std::shared_ptr<const void>& owner = {});

  private:
    struct Compressor;
    const Codec* codec_;
    std::unique_ptr<Compressor> compressor_;
    BufferPool pool_;  // of bodies
};

struct ReadPacket {
    std::optional<Packet> packet;
    std::string problem;
};
// What a peer sent as one chunk of `elements` in `codec`. The body's hash is recomputed unless it is given.
ReadPacket read_packet(std::span<const std::byte> header, std::shared_ptr<const void> owner,
                       std::span<const std::byte> body, std::uint64_t body_hash, const Codec& codec,
                       std::int64_t elements);

class PacketDecoder {
  public:
    explicit PacketDecoder(const Codec& codec);
    ~PacketDecoder();
    PacketDecoder(PacketDecoder&&) noexcept;
    PacketDecoder& operator=(PacketDecoder&&) noexcept;

    // Empty if every value can be decoded and is finite, else why not.
    std::string verify(const Packet& packet);
    // Every body that read_packet lets through can be decoded, and one that is not finite makes no finite sum: to sum
    // such a packet is to verify it.
    bool sum_verifies(const Packet& packet) const;
    // All values of a packet that has passed verify, here or at its maker's.
    void decode(const Packet& packet, std::span<float> values);
    // L2 norm of all values, of a packet that has passed verify. `scratch` holds them where they must be decoded.
    double norm(const Packet& packet, std::vector<float>& scratch);
    // The body as the codec made it: decompressed into `scratch` if need be; nothing if that fails.
    std::optional<std::span<const std::byte>> plain_body(const Packet& packet,
                                                         std::vector<std::byte>& scratch);
    const Codec& codec() const { return *codec_; }

  private:
    struct Decompressor;

    const Codec* codec_;
    std::unique_ptr<Decompressor> decompressor_;
};

}  // namespace atl
