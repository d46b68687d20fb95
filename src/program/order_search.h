// Order search: hill climbing on the issue order of a strand pair, on the clock of the virtual executor, without
// barriers: ops start as soon as data and issue order let them.
//
// A move takes a run of up to three neighbours to another place nearby that keeps every op behind what it waits for; it
// stays if the pair gets faster and keeps within its bytes. Sweeps go on until none helps or the trials are used up.
// Deterministic. Cost: trials x ops.
#pragma once

#include "program/strand_pair.h"

namespace atl {

struct OrderSearchOptions {
    std::int64_t most_trials = 4000;
    std::int32_t reach = 10;                                             // places that a run may move
    std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();  // relative to the pair's start
    // Only runs whose first op stands in one of these places [begin, end) move; empty = all.
    std::vector<std::pair<std::size_t, std::size_t>> places;
};

struct OrderFound {
    std::vector<std::int32_t> order;
    double seconds = 0;
};

// `order` is legal; so is what comes back, and no slower.
OrderFound search_order(const StrandPair& pair, const OverlapModel& overlap, std::vector<std::int32_t> order,
                        const OrderSearchOptions& options = {});

}  // namespace atl
