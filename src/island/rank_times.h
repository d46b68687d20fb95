// When the ops of one step ran on all ranks, on one clock: the ranks share a machine, and so its monotonic clock.
#pragma once

#include <vector>

#include "island/island.h"
#include "program/execution_graph.h"

namespace atl {

// Seconds from the first rank's start; [rank][op].
using StepTimesOfRanks = std::vector<std::vector<OpTime>>;

// Of the island's last step. Collective: every rank gets all.
StepTimesOfRanks gather_step_times(const Island& island, const IslandLinks& links, Milliseconds timeout);

double end_of(const StepTimesOfRanks& step);  // the last op's, of any rank

// [rank][op]: how long each took. What ranks do together counts from the last one's arrival to its end on all of them;
// a message from the later post to its arrival, for a send may end late: nobody waits for it before its memory is
// needed again.
std::vector<std::vector<double>> durations(const std::vector<Program>& programs, const ExecutionGraph& graph,
                                           const StepTimesOfRanks& step);

}  // namespace atl
