#include "codec/packet.h"

#include <fmt/format.h>
#include <zstd.h>

#include <cstring>
#include <utility>

#include "core/check.h"

namespace atl {

namespace {

constexpr std::uint32_t kMagic = 0x504C5441;  // "ATLP"
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kCompressed = 1;
constexpr int kZstdLevel = 1;
constexpr std::size_t kSampleBytes = 16 << 10;

// The header of FORMAT.md, field by field.
struct WireHeader {
    std::uint32_t magic = kMagic;
    std::uint8_t version = kVersion;
    std::uint8_t codec = 0;
    std::uint8_t flags = 0;
    std::uint8_t reserved = 0;
    std::uint64_t elements = 0;
    std::uint64_t body_hash = 0;
    std::uint64_t checksum = 0;  // XXH3-64 of the 24 bytes before
};
static_assert(sizeof(WireHeader) == kPacketHeaderBytes);

std::uint64_t checksum_of(const WireHeader& header) {
    return xxh3_64(std::as_bytes(std::span(&header, 1)).first(offsetof(WireHeader, checksum)));
}

// Small enough to be worth the receivers' time: a sixteenth is what a sample must promise, a 32nd what the whole
// must keep.
bool is_worth_it(std::size_t compressed, std::size_t plain, std::size_t part) {
    return compressed + plain / part < plain;
}

}  // namespace

struct PacketEncoder::Compressor {
    std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), &ZSTD_freeCCtx};
    std::vector<std::byte> output;

    // Size of the compressed bytes in `output`, or of `plain` if that went wrong.
    std::size_t compress(std::span<const std::byte> plain) {
        output.resize(ZSTD_compressBound(plain.size()));
        const std::size_t size = ZSTD_compressCCtx(context.get(), output.data(), output.size(), plain.data(),
                                                   plain.size(), kZstdLevel);
        return ZSTD_isError(size) != 0 ? plain.size() : size;
    }
    bool shrinks(std::span<const std::byte> plain) {
        if (plain.size() <= 2 * kSampleBytes) return true;
        const auto middle = plain.subspan(plain.size() / 2, kSampleBytes);
        return is_worth_it(compress(middle), middle.size(), 16);
    }
};

PacketEncoder::PacketEncoder(const Codec& codec, bool zstd)
    : codec_(&codec), compressor_(zstd ? std::make_unique<Compressor>() : nullptr) {}
PacketEncoder::~PacketEncoder() = default;
PacketEncoder::PacketEncoder(PacketEncoder&&) noexcept = default;
PacketEncoder& PacketEncoder::operator=(PacketEncoder&&) noexcept = default;

std::optional<Packet> PacketEncoder::encode(std::span<const float> values,
                                            const std::shared_ptr<const void>& owner) {
    Packet packet;
    packet.elements = static_cast<std::int64_t>(values.size());
    if (owner && codec_->id() == CodecId::identity) {
        packet.owner = owner;
        packet.body = std::as_bytes(values);
        if (!codec_->is_finite({packet.body, packet.elements})) return {};
    } else {
        const BufferPool::Buffer body =
            pool_.take(static_cast<std::size_t>(codec_->body_bytes(packet.elements)));
        if (!codec_->encode(values, body.bytes)) return {};
        packet.owner = body.owner;
        packet.body = body.bytes;
    }
    if (compressor_ && compressor_->shrinks(packet.body)) {
        const std::size_t size = compressor_->compress(packet.body);
        if (is_worth_it(size, packet.body.size(), 32)) {
            const BufferPool::Buffer body = pool_.take(size);
            std::memcpy(body.bytes.data(), compressor_->output.data(), size);
            packet.owner = body.owner;
            packet.body = body.bytes;
            packet.is_compressed = true;
        }
    }
    packet.body_hash = xxh3_64(packet.body);

    WireHeader header;
    header.codec = static_cast<std::uint8_t>(codec_->id());
    header.flags = packet.is_compressed ? kCompressed : 0;
    header.elements = static_cast<std::uint64_t>(packet.elements);
    header.body_hash = packet.body_hash;
    header.checksum = checksum_of(header);
    std::memcpy(packet.header.data(), &header, sizeof(header));
    return packet;
}

ReadPacket read_packet(std::span<const std::byte> header_bytes, std::shared_ptr<const void> owner,
                       std::span<const std::byte> body, std::uint64_t body_hash, const Codec& codec,
                       std::int64_t elements) {
    WireHeader header;
    if (header_bytes.size() != sizeof(header)) {
        return {{}, fmt::format("a packet header of {} bytes", header_bytes.size())};
    }
    std::memcpy(&header, header_bytes.data(), sizeof(header));
    if (header.magic != kMagic || header.version != kVersion) return {{}, "not a packet of this format"};
    if (header.checksum != checksum_of(header) || header.body_hash != body_hash) {
        return {{}, "the packet's checksum does not match its bytes"};
    }
    if (header.codec != static_cast<std::uint8_t>(codec.id()) || header.reserved != 0 ||
        header.flags > kCompressed) {
        return {{},
                fmt::format("codec {} with flags {}; codec {} was agreed", header.codec, header.flags,
                            static_cast<int>(codec.id()))};
    }
    if (header.elements != static_cast<std::uint64_t>(elements)) {
        return {{}, fmt::format("{} elements; the chunk has {}", header.elements, elements)};
    }
    const bool is_compressed = header.flags == kCompressed;
    const auto plain_bytes = static_cast<std::uint64_t>(codec.body_bytes(elements));
    const std::uint64_t announced =
        is_compressed ? ZSTD_getFrameContentSize(body.data(), body.size()) : body.size();
    if (announced != plain_bytes) {
        return {{}, fmt::format("a body of {} bytes; {} are due", body.size(), plain_bytes)};
    }
    Packet packet;
    std::memcpy(packet.header.data(), &header, sizeof(header));
    packet.owner = std::move(owner);
    packet.body = body;
    packet.body_hash = body_hash;
    packet.elements = elements;
    packet.is_compressed = is_compressed;
    return {std::move(packet), {}};
}

struct PacketDecoder::Decompressor {
    std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context{ZSTD_createDCtx(), &ZSTD_freeDCtx};
    std::vector<std::byte> scratch;
};

PacketDecoder::PacketDecoder(const Codec& codec)
    : codec_(&codec), decompressor_(std::make_unique<Decompressor>()) {}
PacketDecoder::~PacketDecoder() = default;
PacketDecoder::PacketDecoder(PacketDecoder&&) noexcept = default;
PacketDecoder& PacketDecoder::operator=(PacketDecoder&&) noexcept = default;

std::optional<std::span<const std::byte>> PacketDecoder::plain_body(const Packet& packet,
                                                                    std::vector<std::byte>& scratch) {
    if (!packet.is_compressed) return packet.body;
    scratch.resize(static_cast<std::size_t>(codec_->body_bytes(packet.elements)));
    const std::size_t size = ZSTD_decompressDCtx(decompressor_->context.get(), scratch.data(), scratch.size(),
                                                 packet.body.data(), packet.body.size());
    if (ZSTD_isError(size) != 0 || size != scratch.size()) return {};
    return scratch;
}

std::string PacketDecoder::verify(const Packet& packet) {
    const auto body = plain_body(packet, decompressor_->scratch);
    if (!body) return "the body can't be decompressed";
    if (!codec_->is_finite({*body, packet.elements})) return "it holds values that are not finite";
    return {};
}

bool PacketDecoder::sum_verifies(const Packet& packet) const {
    return codec_->id() == CodecId::identity && !packet.is_compressed;
}

void PacketDecoder::decode(const Packet& packet, std::span<float> values) {
    ATOLL_CHECK_EQ(packet.elements, static_cast<std::int64_t>(values.size()));
    const auto body = plain_body(packet, decompressor_->scratch);
    ATOLL_CHECK(body.has_value(), "a packet that was never verified");
    codec_->decode({*body, packet.elements}, 0, values);
}

double PacketDecoder::norm(const Packet& packet, std::vector<float>& scratch) {
    const auto body = plain_body(packet, decompressor_->scratch);
    ATOLL_CHECK(body.has_value(), "a packet that was never verified");
    const auto plain = codec_->plain_values({*body, packet.elements});
    if (!plain.empty()) return kernels::norm(plain, codec_->instruction_set());
    scratch.resize(static_cast<std::size_t>(packet.elements));
    codec_->decode({*body, packet.elements}, 0, scratch);
    return kernels::norm(scratch, codec_->instruction_set());
}

}  // namespace atl
