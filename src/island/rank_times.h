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

// What ranks do together counts from when the last one arrives, or from when they arrive on average: they never come
// together, and a step's time is what they compute on average, what they then wait for the last of them, and the rest.
enum class Arrival : std::uint8_t { last, average };

// [rank][op]: how long each took. A collective ends when it has ended on all its ranks; a message counts from the later
// post to its arrival, for a send may end late: nobody waits for it before its memory is needed again. The average arrival
// is for collectives of link_intra, whose ranks run the same ops; the ranks of others may come late by design.
std::vector<std::vector<double>> durations(const std::vector<Program>& programs, const ExecutionGraph& graph,
                                           const StepTimesOfRanks& step, Arrival arrival);

// What a rank's time went to in a serial step; seconds.
struct SerialAccount {
    double compute_seconds = 0;
    double communication_seconds = 0;  // from the last one's arrival
    double waiting_seconds = 0;        // for the last one's arrival
    double layer_seconds = 0;          // of the first two, what belongs to a layer
    double layer_communication_seconds = 0;
};
using SerialAccounts = std::vector<SerialAccount>;  // [rank]
SerialAccounts account_for(const std::vector<Program>& programs, const ExecutionGraph& graph,
                           const StepTimesOfRanks& step);

}  // namespace atl
