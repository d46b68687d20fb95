// The pair planner: the issue order of one strand pair, from its ops' times.
//
// A long pair is cut into chains of a few mirrored layers; chains that are alike are planned once. Each is searched by
// the dynamic program (program/segment_search.h) and then without barriers (program/order_search.h); where two chains
// meet the search goes on. The simple alternation of interleave.h is tried beside it, and the faster order counts; so
// no plan is slower than the alternation or than one op after another.
// Deterministic. Cost: tenths of a second for 32 mirrored layers.
#pragma once

#include <string>

#include "program/order_search.h"
#include "program/segment_search.h"

namespace atl {

struct PairPlannerOptions {
    std::int32_t longest_segment = 5;
    bool moves_weight_gradients = true;
    bool has_barriers = false;  // after each block, as published runtimes: no search for orders without
    double barrier_seconds = 0;
    std::int32_t chain_layers = 4;  // planned at once
    bool bounds_memory = true;      // by the serial order's peak and what some layers save
    double spare_layers = 1;        // so many
    std::int64_t most_trials = 6000;
};

struct PairPlan {
    std::vector<std::int32_t> order;  // numbers of the pair's ops
    double seconds = 0;
    double serial_seconds = 0;    // one op after another
    double busiest_seconds = 0;   // of the engine with most to do: the bound
    std::int64_t peak_bytes = 0;  // relative to the pair's start
    std::int64_t most_bytes = 0;  // that were allowed; -1: no bound
};

// seconds[op] of the program's ops alone; the program's ops stand in a legal serial order. Ops of the two strands that
// wait for each other: the simple alternation.
PairPlan plan_pair(const Program& program, const LayerOps& first, const LayerOps& second,
                   const std::vector<double>& seconds, const OverlapModel& overlap,
                   const PairPlannerOptions& options = {});

}  // namespace atl
