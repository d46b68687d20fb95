// Words of the round protocol: identities, standings and phases, shared by coordinator and sites.
//
// Plain values: copyable, no ownership, no threads, no errors. Enum values are on the wire and in the
// coordinator's database: never renumber them (FORMAT.md).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/ids.h"

namespace atl {

using Term = StrongId<struct TermTag>;  // grows at every start of the coordinator and at every resume

// One life of a site's process: a random number drawn at its start, never 0. Frames and reports of another
// incarnation are dropped.
using Incarnation = StrongId<struct IncarnationTag, std::uint64_t>;

// Hash of one encoded packet's bytes, as sent.
using PacketDigest = Hash128;

// What a site is doing.
enum class Phase : std::uint8_t {
    starting = 0,    // has no state; offers its checkpoints and waits to be told where to begin
    loading = 1,     // reads initial weights or a checkpoint, or fetches the state from a donor
    ready = 2,       // holds the committed state and waits for a plan
    training = 3,    // inner steps of the open round
    exchanging = 4,  // its contribution is declared; packets travel
    holding = 5,     // holds every mean of the attempt and has reported its hash
    applying = 6,    // applies a commit
    finished = 7,    // has stopped as told; only waits to disconnect
};

// What the coordinator thinks of a site.
enum class Standing : std::uint8_t {
    joining = 0,  // connected, not yet a member
    active = 1,   // a member of the open round
    suspect = 2,  // its connection broke a moment ago
    lost = 3,     // gone, cut off or diverged
    silent = 4,   // connected, but without progress for too long: treated as lost
    left = 5,     // said goodbye
    refused = 6,  // its configuration differs
};

// Lost, silent, left and refused sites are no longer waited for.
constexpr bool is_gone(Standing standing) {
    return standing != Standing::joining && standing != Standing::active && standing != Standing::suspect;
}

std::string_view name(Phase phase);
std::string_view name(Standing standing);

struct SiteInfo {
    SiteId id;
    std::string name;
    Incarnation incarnation;
    std::string address;  // where other sites dial it; empty: it can only dial
    bool operator==(const SiteInfo&) const = default;
};

// `count` consecutive data blocks of one epoch. One block is one inner step of one site.
struct BlockRange {
    std::int64_t epoch = 0;
    std::int64_t first = 0;
    std::int64_t count = 0;
    auto operator<=>(const BlockRange&) const = default;
};

std::int64_t block_count(const std::vector<BlockRange>& ranges);

}  // namespace atl
