// What interleaving two strands can gain at best, given how much of a step is communication and how well ops overlap:
// what a measured speedup is to be compared with.
//
// For a pair of layers, one forward and one backward, the best plans known for tensor-parallel layers lie below
// (C + M) / max(C, M), because what communicates next depends on what computes now. The values come from a dynamic
// program over the ops of such a pair with barriers between segments, at effectiveness e (program/overlap_model.h).
// A step of m micro-batches on one pipeline stage pairs all but one forward and one backward: F + (m - 1) S + B, and
// head, embedding and optimizer stay as they are. Pure.
#pragma once

#include <cstdint>

namespace atl {

// C and M: seconds of computation and of communication, one after the other.
double perfect_overlap_speedup(double compute_seconds, double communication_seconds);

// Of a pair of layers; `share` of it is communication.
double best_pair_speedup(double share, double effectiveness);

struct SerialStep {
    double seconds = 0;                      // of all
    double layer_seconds = 0;                // in layers, of all micro-batches
    double layer_communication_seconds = 0;  // of those
    std::int64_t micro_batches = 0;
};
double attainable_speedup(const SerialStep& step, double effectiveness);

}  // namespace atl
