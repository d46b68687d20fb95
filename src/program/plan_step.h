// Plans of a step as it is to be run: whole, or, where its one micro-batch can be cut in two, as two halves of that
// (Wang et al., "Domino", 2024), and within the memory that strands may take.
//
// What `atoll plan`, benches and runs plan with (plan_strands.h has the planner proper).
// Pure functions. Errors: what StepCosts::op_seconds throws. Cost: plan_strands, and memory placed for each plan.
#pragma once

#include "program/plan_strands.h"

namespace atl {

// A step that strands run: the ops of all ranks, with pairs to plan.
struct PlannableStep {
    std::vector<StepOps> ranks;
    ScheduleTable table;
    ProfileFingerprint fingerprint;
    // Strands may take 3 % more than the same step without them on the fullest rank, or one layer's activations if that
    // is more. false: the table keeps to a budget of its own.
    bool bounds_memory = true;
};

// Whose activations the halves hold: two forwards run beside each other, and two backwards.
inline constexpr std::int32_t kMicroBatchesOfHalves = 3;

// The best few, the fastest first, or one serial plan that says why there is none. halves: the step in halves; null: it
// can't be cut.
std::vector<StrandPlan> plans_of_step(const PlannableStep& whole, const PlannableStep* halves,
                                      StepCosts costs, std::size_t most);

// The highest arena of any rank by this plan. Programs without kernels' scratch are smaller than what runs.
std::int64_t peak_bytes(const PlannableStep& step, const StrandPlan& plan);

}  // namespace atl
