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

// What each ingredient of the planner gives, for the pair that the first rank runs most: its seconds without and with
// them, one after another.
struct Ingredient {
    std::string name;
    double seconds = 0;  // of a pair
};
std::vector<Ingredient> plan_ingredients(const StepOps& step, const ScheduleTable& table,
                                         const StepCosts& costs);

}  // namespace atl
