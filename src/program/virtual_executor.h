// The virtual executor: runs all ranks' programs on a clock that only counts.
//
// Each resource of a rank is a FIFO in issue order and works on one op at a time; an op starts when its resource is
// free and its data and `after` edges have finished. A collective starts on all ranks when the last one has arrived
// and ends on all of them together, after the longest of the ranks' durations. Overlapping ops don't slow each
// other down.
//
// Errors: programs that deadlock fail a check that names an op of the cycle. Cost: O(ops + edges).
#pragma once

#include <array>
#include <vector>

#include "program/dependencies.h"
#include "program/program.h"

namespace atl {

struct VirtualOpTime {
    double start_seconds = 0;
    double end_seconds = 0;
    bool operator==(const VirtualOpTime&) const = default;
};

struct VirtualRun {
    std::vector<std::vector<VirtualOpTime>> ops;               // [program][op]
    std::vector<std::array<double, kResources>> busy_seconds;  // [program][resource]
    double step_seconds = 0;                                   // when the last op ends
};

// op_seconds[program][op]: from the cost model or a profile.
VirtualRun execute_virtually(const std::vector<Program>& programs,
                             const std::vector<std::vector<double>>& op_seconds);

}  // namespace atl
