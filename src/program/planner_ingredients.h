// What each ingredient of the strand planner gives: the planner's options with one ingredient after another.
//
// As predicted for a pair, and as plans of whole steps that can be run: those with barriers in barrier mode, which puts its
// barriers where communication begins and not where a block does. Pure. Cost: a plan for each.
#pragma once

#include "program/execution_mode.h"
#include "program/plan_strands.h"

namespace atl {

struct Ingredient {
    std::string name;
    double seconds = 0;  // of a pair
};
// For the pair that the rank runs most: one op after another, with one ingredient after another, and the bound.
std::vector<Ingredient> plan_ingredients(const StepOps& step, const ScheduleTable& table,
                                         const StepCosts& costs);

struct IngredientPlan {
    std::string name;
    ExecutionMode mode = ExecutionMode::event;
    StrandPlan plan;

    double predicted_seconds() const;  // of a step in this mode
};
// The same but for the bound.
std::vector<IngredientPlan> ingredient_plans(const std::vector<StepOps>& steps, const ScheduleTable& table,
                                             const StepCosts& costs);

}  // namespace atl
