#include "program/planner_ingredients.h"

#include "program/schedule.h"

namespace atl {
namespace {

constexpr const char* kSerial = "one op after another";

struct NamedOptions {
    const char* name;
    PairPlannerOptions options;
};

std::vector<NamedOptions> options_by_ingredient() {
    PairPlannerOptions options{.longest_segment = 1,
                               .moves_weight_gradients = false,
                               .has_barriers = true,
                               .chain_layers = 1,
                               .bounds_memory = false};
    std::vector<NamedOptions> all{{"single-op pairs", options}};
    const auto add = [&](const char* name) { all.push_back({name, options}); };
    options.longest_segment = PairPlannerOptions{}.longest_segment;
    add("+ segments");
    options.moves_weight_gradients = true;
    add("+ moved weight gradients");
    options.chain_layers = PairPlannerOptions{}.chain_layers;
    add("+ seams of layers");
    options.has_barriers = false;
    add("+ no barriers");
    options.bounds_memory = true;
    add("within the bytes allowed");
    return all;
}

}  // namespace

std::vector<Ingredient> plan_ingredients(const StepOps& step, const ScheduleTable& table,
                                         const StepCosts& costs) {
    const auto seconds = costs.op_seconds(step.program);
    std::vector<Ingredient> ingredients;
    const auto add_all = [&](const Program& program, const LayerOps& first, const LayerOps& second) {
        const auto pair = make_strand_pair(program, first, second, seconds);
        ingredients.push_back({kSerial, serial_seconds(pair)});
        for (const auto& [name, options] : options_by_ingredient())
            ingredients.push_back(
                {name, plan_pair(program, first, second, seconds, costs.overlap, options).seconds});
        ingredients.push_back({"bound: the busiest engine", busiest_seconds(pair)});
    };
    expand(step, table,
           [&](const Program& program, const Slot& slot, const LayerOps& first, const LayerOps& second) {
               const bool is_main =
                   slot.first.kind == WorkKind::forward && slot.second->kind == WorkKind::backward;
               if (ingredients.empty() && is_main) add_all(program, first, second);
               return interleave(program, first, second);
           });
    return ingredients;
}

double IngredientPlan::predicted_seconds() const {
    if (!plan.interleaves) return plan.predicted.serial_seconds;
    return mode == ExecutionMode::barrier ? plan.predicted.barrier_seconds : plan.predicted.event_seconds;
}

std::vector<IngredientPlan> ingredient_plans(const std::vector<StepOps>& steps, const ScheduleTable& table,
                                             const StepCosts& costs) {
    std::vector<IngredientPlan> plans;
    for (const auto& [name, options] : options_by_ingredient()) {
        const auto mode = options.has_barriers ? ExecutionMode::barrier : ExecutionMode::event;
        plans.push_back({name, mode, interleaved_plan(steps, table, costs, options)});
    }
    plans.insert(plans.begin(), {kSerial, ExecutionMode::serial, without_interleaving(plans.front().plan)});
    return plans;
}

}  // namespace atl
