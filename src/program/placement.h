// Placement: an offset for every value and every op's scratch, decided before the step runs, so that the peak is
// computed and not estimated.
//
// There is one arena per (role, space). Parameters, gradients, state, inputs and outputs live for the whole run
// and lie one behind the other. Activations and scratch share the arena (activation, space) and reuse bytes: B may
// lie over A only if every op that touches A happens before the first writer of B (program/dependencies.h).
//
// Source of the algorithm: greedy best fit over values sorted by size, as in offline dynamic storage allocation
// (Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020), with a partial order in
// place of intervals. Cost: O(values^2) cheap steps; a step of 32 layers and 8 micro-batches takes under a second.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "program/program.h"

namespace atl {

inline constexpr std::int64_t kPlacementAlignmentBytes = 64;

struct ArenaId {
    Role role = Role::activation;
    Space space = Space::device;
    auto operator<=>(const ArenaId&) const = default;
};

struct Placement {
    std::vector<std::int64_t> value_offset_bytes;  // [value]: in the arena of its base; views included
    std::vector<std::int64_t>
        scratch_offset_bytes;                     // [op]: in the activations' device arena; -1 = no scratch
    std::map<ArenaId, std::int64_t> arena_bytes;  // only arenas that hold something
    // Sum over all arenas: the highest byte that the step touches in each.
    std::int64_t peak_bytes() const;

    bool operator==(const Placement&) const = default;
};

struct PlacementOptions {
    // Bytes may pass from A to B without happens-before if B's first writer stands at least this many ops behind
    // the last op that touches A; the placer then adds the `after` edge, but never one from a send. 0 = add no edges.
    std::int32_t after_edge_distance = 0;
};

ArenaId arena_of(const Program& program, ValueId id);  // that of its base
// Adds `after` edges to the program, if the options let it, and nothing else.
Placement place(Program& program, const PlacementOptions& options = {});

}  // namespace atl
