// Two strands on one rank: two lists of ops that don't depend on each other, merged into one issue order so that one
// computes while the other communicates.
//
// Each list is cut behind its communication ops into segments. The strands take turns by segments, layer by layer: a
// collective of one is issued before the other's compute, which runs while it is under way. Where the layers' numbers
// of segments differ, or the numbers of layers, the strand that is behind goes first, by the share it has done. The
// first strand is never behind the second, so if both write one gradient, it does so first.
// Source: the block-wise co-execution of Wang et al., "DHelix", 2024, without its barriers. Cost: O(ops).
#pragma once

#include <vector>

#include "program/program.h"

namespace atl {

// One strand's ops in issue order, by layer.
using LayerOps = std::vector<std::vector<OpId>>;

std::vector<OpId> interleave(const Program& program, const LayerOps& first, const LayerOps& second);

}  // namespace atl
