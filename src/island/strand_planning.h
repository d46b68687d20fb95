// How the ranks of an island come to one strand plan: the gateway proposes, every rank checks that the plan is for what
// it runs, and all ranks interleave by it or all run serially.
//
// Only for schedule = strands with strand_order = planned. The proposal is measured, or the file that the options name, or
// made from the profile that they name, or from a cost model. Too few micro-batches and a predicted gain below 1 % make a
// serial plan that says why. Ranks compare hashes of plans, so that one rank's objection is everybody's.
// A step of one micro-batch with an even number of sequences is planned as two halves, if that is predicted to pay.
// Collective: agree_on_plan is called by every rank. Errors: CommError. Cost: planning (program/plan_strands.h) on the
// gateway, a program on each rank.
#pragma once

#include "core/file_system.h"
#include "core/log.h"
#include "island/island_options.h"
#include "program/plan_strands.h"

namespace atl {

// Whether these options ask for a plan, and for one that is made from measurements (island/measured_plan.h).
bool plans_strands(const IslandOptions& options);
bool measures_plan(const IslandOptions& options);

// The options of a step whose micro-batches are cut in two, so that both halves of one run as strands.
IslandOptions with_halves(IslandOptions options);

// Whether a step's one micro-batch can be planned as two halves.
bool may_halve(const IslandOptions& options);

// The plan that these costs give the island's step, and the best few (program/plan_strands.h). Throw UserError for a
// profile that lacks ops.
StrandPlan plan_of(const IslandOptions& options, const StepCosts& costs);
std::vector<StrandPlan> candidate_plans(const IslandOptions& options, StepCosts costs, std::size_t most);
// What the gateway proposes where nothing is measured. UserError for a file that can't be read or is no plan or profile.
struct ProposedPlan {
    StrandPlan plan;
    std::string stale;  // not empty: the file is sound, but for another step, and the plan serial; says why
};
ProposedPlan proposed_plan(const IslandOptions& options, const FileSystem& files);

// Puts the plan on which all ranks agree into the options; `proposal` counts on the gateway alone, where the outcome is
// also logged.
void agree_on_plan(IslandOptions& options, const IslandLinks& links, const StrandPlan& proposal,
                   const Log& log);

}  // namespace atl
