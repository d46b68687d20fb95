// A frame: the unit that sites send to one another. A fixed header says where it belongs, a small prefix and
// a large body follow; FORMAT.md gives the bytes.
//
// Ownership: a body is shared and immutable, so one encoded packet goes to many peers without a copy.
// Errors: read_head returns a reason instead of throwing, because foreign bytes are an expected outcome.
// Threads: values; a body may be read from any thread. Cost: kFrameHeaderBytes + prefix + body on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"

namespace atl {

// The coordinator's place among the sites' numbers.
inline constexpr SiteId kCoordinatorSite{-1};

// The numbers stand on the wire: never renumber. Below 16 the transport speaks to itself.
enum class FrameKind : std::uint8_t {
    hello = 1,
    credit = 2,
    goodbye = 3,
    control = 16,        // between a site and the coordinator; the body is theirs
    packet = 17,         // one codec packet of a fragment
    want = 18,           // the packets that the sender still misses
    declare = 19,        // a site's statement about its contribution
    state_request = 20,  // pieces of the outer state that a joiner wants
    state_piece = 21,
    state_index = 22,  // what a donor holds, with hashes
};

std::string_view name(FrameKind kind);

// Immutable bytes with an owner, and their XXH3-64 if somebody has computed it already.
class Payload {
  public:
    Payload() = default;
    // The bytes live as long as `owner`. `hash` must be the bytes' own.
    Payload(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
            std::optional<std::uint64_t> hash = {})
        : owner_(std::move(owner)), bytes_(bytes), hash_(hash) {}
    static Payload own(std::vector<std::byte> bytes);

    std::span<const std::byte> bytes() const { return bytes_; }
    std::size_t size() const { return bytes_.size(); }
    bool has_owner() const { return owner_ != nullptr; }
    std::uint64_t hash() const;  // computed at most once per object

  private:
    std::shared_ptr<const void> owner_;  // shared: the bytes are in several send queues at once
    std::span<const std::byte> bytes_;
    mutable std::optional<std::uint64_t> hash_;
};

struct Frame {
    FrameKind kind = FrameKind::control;
    std::uint8_t leg = 0;  // what it is in its attempt; the exchange's own number
    SiteId from;           // set by the transport
    SiteId to;
    Incarnation from_incarnation;  // set by the transport
    Incarnation to_incarnation;    // set by the transport
    Round round;
    FragmentId fragment;
    Attempt attempt;
    std::int32_t chunk = 0;
    std::vector<std::byte> prefix;  // at most kMaximumPrefixBytes; copied
    Payload body;

    std::int64_t wire_bytes() const;
};

inline constexpr std::int64_t kFrameHeaderBytes = 88;
inline constexpr std::int64_t kMaximumPrefixBytes = 4096;

// Header and prefix as they go on the wire; the body follows unchanged. `run` names the run (a hash of its id).
std::vector<std::byte> write_head(const Frame& frame, std::uint64_t run);

// What a stream must know of a frame that begins with these bytes, before it has checked anything.
struct FrameLengths {
    std::int64_t prefix_bytes = 0;
    std::int64_t body_bytes = 0;
};
std::optional<FrameLengths> frame_lengths(std::span<const std::byte, kFrameHeaderBytes> header);
// Zeros in the place of a header say only that the sender lives.
bool is_sign_of_life(std::span<const std::byte, kFrameHeaderBytes> header);

struct ReadFrame {
    std::optional<Frame> frame;
    std::string problem;  // why there is no frame
};
// Checks size, magic, version, run and checksum over header, prefix and body.
ReadFrame read_frame(std::span<const std::byte> head, Payload body, std::uint64_t run);

}  // namespace atl
