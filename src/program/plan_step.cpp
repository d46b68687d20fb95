#include "program/plan_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/placement.h"
#include "program/saved_activations.h"
#include "program/schedule.h"
#include "program/virtual_executor.h"

namespace atl {
namespace {

// Of one rank of each pipeline stage: others of a stage run the same.
std::vector<Program> programs_of_stages(const PlannableStep& step, const StrandPlan& plan) {
    std::vector<Program> programs;
    std::vector<std::int32_t> stages;  // the first ones of ranks
    for (const StepOps& rank : step.ranks) {
        const auto stage = rank.stages.front().stage;
        if (std::ranges::find(stages, stage) != stages.end()) continue;
        stages.push_back(stage);
        programs.push_back(planned_program(rank, step.table, plan));
    }
    return programs;
}

std::int64_t peak_bytes_of(std::vector<Program>& programs) {
    std::int64_t most = 0;
    for (Program& program : programs) most = std::max(most, place(program).peak_bytes());
    return most;
}

class MemoryBound {
  public:
    explicit MemoryBound(const PlannableStep& step) : step_(step) {
        if (!step.bounds_memory) return;
        auto programs = programs_of_stages(step, serial_plan(""));
        const std::int64_t bytes = peak_bytes_of(programs);
        allowed_bytes_ = bytes + std::max(bytes * 3 / 100, saved_layer_bytes(programs));
    }

    bool fits(const StrandPlan& plan) const {
        return !plan.interleaves || !step_.bounds_memory || peak_bytes(step_, plan) <= allowed_bytes_;
    }

  private:
    const PlannableStep& step_;
    std::int64_t allowed_bytes_ = 0;
};

std::vector<StrandPlan> plans_as_cut(const PlannableStep& step, StepCosts& costs, std::size_t most) {
    costs.fingerprint = step.fingerprint;
    const MemoryBound bound(step);
    // Bytes of a plan are known when it is placed; with less to spare it takes fewer of them.
    for (const double spare_layers : {1.0, 0.5, 0.0}) {
        auto plans = candidate_plans(step.ranks, step.table, costs, most, spare_layers);
        std::erase_if(plans, [&](const StrandPlan& plan) { return !bound.fits(plan); });
        if (!plans.empty()) return plans;
    }
    StrandPlan none = serial_plan("every plan takes more memory than strands may");
    none.costs = costs.source;
    none.fingerprint = costs.fingerprint;
    return {none};
}

double serial_seconds_of(const PlannableStep& step, const StepCosts& costs) {
    std::vector<Program> programs;
    std::vector<std::vector<double>> seconds;
    for (const StepOps& rank : step.ranks) {
        programs.push_back(serial_schedule(rank));
        seconds.push_back(costs.op_seconds(programs.back()));
    }
    return execute_virtually(programs, seconds, ExecutionMode::serial, costs.overlap).step_seconds;
}

}  // namespace

std::vector<StrandPlan> plans_of_step(const PlannableStep& whole, const PlannableStep* halves,
                                      StepCosts costs, std::size_t most) {
    if (halves == nullptr) return plans_as_cut(whole, costs, most);
    std::vector<StrandPlan> plans = plans_as_cut(*halves, costs, most);
    const double whole_seconds = serial_seconds_of(whole, costs);
    for (StrandPlan& plan : plans) {
        if (plan.predicted.event_seconds <= 0) continue;  // none was made, and it says why
        const double gain = 1 - plan.predicted.event_seconds / whole_seconds;
        plan.predicted.serial_seconds = whole_seconds;
        if (!plan.interleaves || gain < kLeastGain) {
            plan = without_interleaving(std::move(plan));
            plan.reason = fmt::format(
                "the step has 1 micro-batch, and two halves of it save {:.1f} % of it, less than {:.0f} %",
                100 * gain, 100 * kLeastGain);
            continue;
        }
        plan.halves_micro_batches = true;
        plan.reason = fmt::format(
            "two halves of the one micro-batch are predicted to save {:.1f} % of a step", 100 * gain);
    }
    if (plans.front().interleaves)
        std::erase_if(plans, [](const StrandPlan& plan) { return !plan.interleaves; });
    else
        plans.resize(1);
    return plans;
}

std::int64_t peak_bytes(const PlannableStep& step, const StrandPlan& plan) {
    auto programs = programs_of_stages(step, plan);
    return peak_bytes_of(programs);
}

}  // namespace atl
