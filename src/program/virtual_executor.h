// The virtual executor: runs all ranks' programs on a clock that only counts.
//
// Each resource of a rank is a FIFO in issue order and works on one op at a time; an op starts when its resource is
// free and its data, `after` and mode edges have finished. A collective starts on all ranks when the last one has
// arrived and ends on all of them together, after the longest of the ranks' durations.
// Ops that run at once on one rank slow each other down as the overlap model says (program/overlap_model.h); what
// several ranks do together proceeds at the rate of the slowest. By default nothing slows anything down.
// Sends and receives don't hold up their resource: one is posted as soon as its edges have finished and the one before
// it is posted. A transfer starts when its send and its receive are posted and the transfer before it from that rank to
// that rank is over, and takes the longer of the two durations. The op ends, for those that wait for it, when its transfer and all earlier ops of its resource have ended.
//
// Errors: programs that deadlock fail a check that names an op of the cycle. Cost: O(ops + edges), with an overlap model
// O(log ops) more an op. Most of it is what doesn't depend on times: a VirtualExecutor does that once for many runs.
#pragma once

#include <array>
#include <vector>

#include "program/execution_graph.h"
#include "program/op_time.h"
#include "program/overlap_model.h"
#include "program/program.h"

namespace atl {

struct VirtualRun {
    std::vector<std::vector<OpTime>> ops;                      // [program][op]
    std::vector<std::array<double, kResources>> busy_seconds;  // [program][resource]: sum of the times taken
    double step_seconds = 0;                                   // when the last op ends
};

class VirtualExecutor {
  public:
    VirtualExecutor(const std::vector<Program>& programs, ExecutionMode mode);

    VirtualRun run(const std::vector<std::vector<double>>& op_seconds,
                   const OverlapModel& overlap = {}) const;

  private:
    VirtualRun run_of(const std::vector<OpTime>& times) const;

    ExecutionGraph graph_;
    std::vector<std::size_t> order_;                    // of its nodes
    std::vector<std::vector<std::size_t>> successors_;  // [node]
    std::vector<std::vector<OpClass>> classes_;         // [program][op]
};

// Once. op_seconds[program][op]: from the cost model or a profile.
VirtualRun execute_virtually(const std::vector<Program>& programs,
                             const std::vector<std::vector<double>>& op_seconds,
                             ExecutionMode mode = ExecutionMode::event, const OverlapModel& overlap = {});

}  // namespace atl
