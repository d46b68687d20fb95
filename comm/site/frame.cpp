#include "comm/site/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/check.h"
#include "core/hash.h"

namespace atl {

namespace {

constexpr std::uint32_t kMagic = 0x464C5441;  // "ATLF"
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kChecksumOffset = 80;

// The header of FORMAT.md, field by field; little-endian as every machine this builds for.
struct WireHeader {
    std::uint32_t magic = kMagic;
    std::uint8_t version = kVersion;
    std::uint8_t kind = 0;
    std::uint8_t leg = 0;
    std::uint8_t reserved = 0;
    std::uint64_t run = 0;
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::uint64_t from_incarnation = 0;
    std::uint64_t to_incarnation = 0;
    std::int64_t round = 0;
    std::int32_t fragment = 0;
    std::int32_t attempt = 0;
    std::int32_t chunk = 0;
    std::uint32_t prefix_bytes = 0;
    std::uint64_t body_bytes = 0;
    std::uint64_t body_hash = 0;
    std::uint64_t checksum = 0;
};
static_assert(sizeof(WireHeader) == kFrameHeaderBytes);
static_assert(offsetof(WireHeader, checksum) == kChecksumOffset);

// Over the head with its checksum field left zero: the header includes the body's hash, so the body is covered.
std::uint64_t checksum_of(std::vector<std::byte> head) {
    std::memset(head.data() + kChecksumOffset, 0, sizeof(std::uint64_t));
    return xxh3_64(head);
}

bool is_known(std::uint8_t kind) {
    return kind >= static_cast<std::uint8_t>(FrameKind::hello) &&
           name(static_cast<FrameKind>(kind)) != "unknown";
}

std::string find_problem(std::span<const std::byte> head, const WireHeader& header, const Payload& body,
                         std::uint64_t run) {
    if (header.magic != kMagic) return "not a frame of this program";
    if (header.version != kVersion) {
        return fmt::format("frame format {}, this program speaks {}", header.version, kVersion);
    }
    if (header.prefix_bytes > kMaximumPrefixBytes ||
        head.size() != sizeof(WireHeader) + header.prefix_bytes || header.body_bytes != body.size()) {
        return fmt::format("lengths do not agree: {} + {} bytes announced, {} + {} received",
                           kFrameHeaderBytes + header.prefix_bytes, header.body_bytes, head.size(),
                           body.size());
    }
    if (header.body_hash != body.hash() || header.checksum != checksum_of({head.begin(), head.end()})) {
        return "checksum does not match the bytes";
    }
    if (header.run != run) return "frame of another run";
    if (!is_known(header.kind)) return fmt::format("unknown kind {}", header.kind);
    return {};
}

}  // namespace

std::string_view name(FrameKind kind) {
    switch (kind) {
        case FrameKind::hello:
            return "hello";
        case FrameKind::credit:
            return "credit";
        case FrameKind::goodbye:
            return "goodbye";
        case FrameKind::control:
            return "control";
        case FrameKind::packet:
            return "packet";
        case FrameKind::want:
            return "want";
        case FrameKind::declare:
            return "declare";
        case FrameKind::state_request:
            return "state request";
        case FrameKind::state_piece:
            return "state piece";
        case FrameKind::state_index:
            return "state index";
    }
    return "unknown";
}

Payload Payload::own(std::vector<std::byte> bytes) {
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    const std::span<const std::byte> view(*owner);
    return Payload(std::move(owner), view);
}

std::uint64_t Payload::hash() const {
    if (!hash_) hash_ = xxh3_64(bytes_);
    return *hash_;
}

std::int64_t Frame::wire_bytes() const {
    return kFrameHeaderBytes + static_cast<std::int64_t>(prefix.size() + body.size());
}

std::vector<std::byte> write_head(const Frame& frame, std::uint64_t run) {
    ATOLL_CHECK_LE(static_cast<std::int64_t>(frame.prefix.size()), kMaximumPrefixBytes);
    WireHeader header;
    header.kind = static_cast<std::uint8_t>(frame.kind);
    header.leg = frame.leg;
    header.run = run;
    header.from = frame.from.value();
    header.to = frame.to.value();
    header.from_incarnation = frame.from_incarnation.value();
    header.to_incarnation = frame.to_incarnation.value();
    header.round = frame.round.value();
    header.fragment = frame.fragment.value();
    header.attempt = frame.attempt.value();
    header.chunk = frame.chunk;
    header.prefix_bytes = static_cast<std::uint32_t>(frame.prefix.size());
    header.body_bytes = frame.body.size();
    header.body_hash = frame.body.hash();

    std::vector<std::byte> head(sizeof(header) + frame.prefix.size());
    std::memcpy(head.data(), &header, sizeof(header));
    if (!frame.prefix.empty()) {
        std::memcpy(head.data() + sizeof(header), frame.prefix.data(), frame.prefix.size());
    }
    const std::uint64_t checksum = checksum_of(head);
    std::memcpy(head.data() + kChecksumOffset, &checksum, sizeof(checksum));
    return head;
}

std::optional<FrameLengths> frame_lengths(std::span<const std::byte, kFrameHeaderBytes> bytes) {
    WireHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const bool plausible = header.magic == kMagic && header.prefix_bytes <= kMaximumPrefixBytes &&
                           header.body_bytes <= std::numeric_limits<std::int64_t>::max();
    if (!plausible) return {};
    return FrameLengths{header.prefix_bytes, static_cast<std::int64_t>(header.body_bytes)};
}

bool is_sign_of_life(std::span<const std::byte, kFrameHeaderBytes> header) {
    return std::ranges::all_of(header, [](std::byte byte) { return byte == std::byte{0}; });
}

ReadFrame read_frame(std::span<const std::byte> head, Payload body, std::uint64_t run) {
    if (head.size() < sizeof(WireHeader)) {
        return {{}, fmt::format("{} bytes are too few for a frame's header", head.size())};
    }
    WireHeader header;
    std::memcpy(&header, head.data(), sizeof(header));
    std::string problem = find_problem(head, header, body, run);
    if (!problem.empty()) return {{}, std::move(problem)};

    Frame frame;
    frame.kind = static_cast<FrameKind>(header.kind);
    frame.leg = header.leg;
    frame.from = SiteId(header.from);
    frame.to = SiteId(header.to);
    frame.from_incarnation = Incarnation(header.from_incarnation);
    frame.to_incarnation = Incarnation(header.to_incarnation);
    frame.round = Round(header.round);
    frame.fragment = FragmentId(header.fragment);
    frame.attempt = Attempt(header.attempt);
    frame.chunk = header.chunk;
    frame.prefix.assign(head.begin() + sizeof(header), head.end());
    frame.body = std::move(body);
    return {std::move(frame), {}};
}

}  // namespace atl
