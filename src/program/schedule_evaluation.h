// Checks and times a schedule table without a model: the virtual executor's little brother, on pieces of work.
//
// A slot starts when its rank is free and what its work needs has ended: a forward the one of the stage before it; a
// backward or input gradient its own forward and the one of the stage behind it; a weight gradient its input
// gradient. Between two ranks comes the transfer. A paired slot ends as a whole.
//
// Activations count in pieces, those of one micro-batch on one stage, from the start of the forward to the end of
// the backward or weight gradient. Cost: O(work).
#pragma once

#include <string>
#include <vector>

#include "program/schedule_table.h"

namespace atl {

struct WorkCosts {
    double forward_seconds = 1;  // of one micro-batch on one stage
    double input_gradient_seconds = 1;
    double weight_gradient_seconds = 1;
    double transfer_seconds = 0;
    double pair_gain = 1;             // paired work takes the sum of both, divided by this
    std::vector<double> stage_scale;  // [stage]: factor of the first three; empty = 1 for all

    double seconds(const Work& work) const;
    double seconds(const Slot& slot) const;
};

struct SlotTime {
    double start_seconds = 0;
    double end_seconds = 0;
    bool operator==(const SlotTime&) const = default;
};

struct ScheduleEvaluation {
    std::vector<std::vector<SlotTime>> slots;  // [rank][slot]
    double step_seconds = 0;                   // when the last slot ends
    std::vector<double> busy_seconds;          // [rank]
    std::vector<std::int32_t> peak_pieces;     // [rank]

    // The share of the ranks' time in which they have nothing to do.
    double bubble_share() const;
};

// One line per broken rule, naming rank and work: work of another rank, missing or done twice; gradients of a stage
// out of micro-batch order; both halves of a pair of one micro-batch, or writing one gradient at once in the wrong
// order; slots that wait for one another. Empty for a legal table.
std::vector<std::string> check_table(const ScheduleTable& table);

// The table must be legal; slots that wait for one another fail a check.
ScheduleEvaluation evaluate(const ScheduleTable& table, const WorkCosts& costs);

// [rank]: the most pieces it holds at once; depends on order alone. O(slots).
std::vector<std::int32_t> peak_pieces(const ScheduleTable& table);

}  // namespace atl
