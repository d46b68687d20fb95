// plan_strands: the plan of a whole island's step, from what ops cost: the issue order of every kind of pair, the
// predicted step, and whether interleaving is worth it.
//
// A pure function of its arguments. Two forwards or a forward and a backward are planned; pairs of backwards, whose
// gradients must be added in order, alternate. Cost: tenths of a second for 32 layers, and two virtual executions.
#pragma once

#include <functional>

#include "program/cost_model.h"
#include "program/pair_planner.h"
#include "program/strand_plan.h"

namespace atl {

// What ops cost, and how that is known.
struct StepCosts {
    std::function<std::vector<double>(const Program&)> op_seconds;
    OverlapModel overlap;
    std::string source;
    ProfileFingerprint fingerprint;
};
StepCosts costs_of(const OpProfile& profile);
StepCosts costs_of(const MachineRates& rates, const ProfileFingerprint& fingerprint);

// What interleaving must gain, as a share of the serial step.
inline constexpr double kLeastGain = 0.01;

// steps: of all ranks, in rank order; table: with pairs. Throws what op_seconds throws.
StrandPlan plan_strands(const std::vector<StepOps>& steps, const ScheduleTable& table, const StepCosts& costs,
                        const PairPlannerOptions& options = {});

// The same, be it worth it or not.
StrandPlan interleaved_plan(const std::vector<StepOps>& steps, const ScheduleTable& table,
                            const StepCosts& costs, const PairPlannerOptions& options = {});
// A serial plan with what is known of this one: reason, costs and prediction.
StrandPlan without_interleaving(StrandPlan plan);

// Different plans of that step that are predicted to gain enough, the fastest first and at most `most`: what is worth
// trying for real. The planner's own choice, the same without some of its ingredients, and strands that take turns. If
// there is none, the one serial plan that says why. spare_layers: as in PairPlannerOptions.
std::vector<StrandPlan> candidate_plans(const std::vector<StepOps>& steps, const ScheduleTable& table,
                                        const StepCosts& costs, std::size_t most, double spare_layers = 1);

}  // namespace atl
