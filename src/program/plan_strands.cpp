#include "program/plan_strands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "program/schedule.h"
#include "program/virtual_executor.h"

namespace atl {
namespace {

bool is_backward(const Work& work) {
    return work.kind == WorkKind::backward;
}
bool is_forward(const Work& work) {
    return work.kind == WorkKind::forward;
}

// Plans a kind of pair when it is first met.
class PairsOfStep {
  public:
    PairsOfStep(StrandPlan& plan, const StepCosts& costs, const PairPlannerOptions& options)
        : plan_(plan), costs_(costs), options_(options) {}

    void add(const StepOps& step, const ScheduleTable& table) {
        const auto seconds = costs_.op_seconds(step.program);
        expand(step, table,
               [&](const Program& program, const Slot& slot, const LayerOps& first, const LayerOps& second) {
                   if (is_forward(slot.first) && plan_.find(slot) == nullptr)
                       add_pair(program, slot, first, second, seconds);
                   return interleave(program, first, second);
               });
    }

  private:
    void add_pair(const Program& program, const Slot& slot, const LayerOps& first, const LayerOps& second,
                  const std::vector<double>& seconds) {
        auto options = options_;
        options.bounds_memory = options.bounds_memory && is_backward(*slot.second);
        auto found = plan_pair(program, first, second, seconds, costs_.overlap, options);
        const auto count = [](const LayerOps& layers) {
            std::size_t ops = 0;
            for (const auto& layer : layers) ops += layer.size();
            return static_cast<std::int32_t>(ops);
        };
        PlannedPair pair{.first = slot.first,
                         .second = *slot.second,
                         .first_ops = count(first),
                         .second_ops = count(second),
                         .order = std::move(found.order),
                         .seconds = found.seconds,
                         .serial_seconds = found.serial_seconds,
                         .busiest_seconds = found.busiest_seconds,
                         .peak_bytes = found.peak_bytes,
                         .most_bytes = found.most_bytes};
        pair.first.micro_batch = pair.second.micro_batch = 0;
        plan_.pairs.push_back(std::move(pair));
    }

    StrandPlan& plan_;
    const StepCosts& costs_;
    const PairPlannerOptions& options_;
};

std::vector<Program> programs_of(const std::vector<StepOps>& steps, const ScheduleTable& table,
                                 const StrandPlan& plan) {
    std::vector<Program> programs;
    for (const auto& step : steps) programs.push_back(planned_program(step, table, plan));
    return programs;
}

std::vector<std::vector<double>> seconds_of(const std::vector<Program>& programs, const StepCosts& costs) {
    std::vector<std::vector<double>> seconds;
    for (const auto& program : programs) seconds.push_back(costs.op_seconds(program));
    return seconds;
}

StepPrediction predict(const std::vector<StepOps>& steps, const ScheduleTable& table, const StrandPlan& plan,
                       const StepCosts& costs) {
    const auto serial = programs_of(steps, table, serial_plan(""));
    const auto alone = seconds_of(serial, costs);
    StepPrediction predicted;
    predicted.serial_seconds =
        execute_virtually(serial, alone, ExecutionMode::serial, costs.overlap).step_seconds;
    for (std::size_t rank = 0; rank < serial.size(); ++rank) {
        double compute = 0, communication = 0;
        for (const auto& op : serial[rank].ops) {
            if (op.kind == OpKind::send) continue;
            (op.resource == Resource::compute ? compute : communication) +=
                alone[rank][static_cast<std::size_t>(op.id.value())];
        }
        predicted.compute_seconds = std::max(predicted.compute_seconds, compute);
        predicted.communication_seconds = std::max(predicted.communication_seconds, communication);
    }
    const auto planned = programs_of(steps, table, plan);
    const auto seconds = seconds_of(planned, costs);
    predicted.barrier_seconds =
        execute_virtually(planned, seconds, ExecutionMode::barrier, costs.overlap).step_seconds;
    predicted.event_seconds =
        execute_virtually(planned, seconds, ExecutionMode::event, costs.overlap).step_seconds;
    return predicted;
}

}  // namespace

StepCosts costs_of(const OpProfile& profile) {
    return {.op_seconds = [profile](const Program& program) { return op_seconds(program, profile); },
            .overlap = OverlapModel(profile.slowdowns),
            .source = fmt::format("profile of {} rank(s) on {}, {}", profile.provenance.ranks,
                                  profile.provenance.host, profile.provenance.date),
            .fingerprint = profile.fingerprint};
}

StepCosts costs_of(const MachineRates& rates, const ProfileFingerprint& fingerprint) {
    return {.op_seconds = [rates](const Program& program) { return predicted_seconds(program, rates); },
            .overlap = {},
            .source = "cost model, nothing was measured",
            .fingerprint = fingerprint};
}

namespace {

StrandPlan unplanned(const StepCosts& costs, std::string reason) {
    auto plan = serial_plan(std::move(reason));
    plan.costs = costs.source;
    plan.fingerprint = costs.fingerprint;
    return plan;
}

// The plan, or a serial one if it is predicted to gain too little.
StrandPlan judged(StrandPlan plan) {
    const double gain = 1 - plan.predicted.event_seconds / plan.predicted.serial_seconds;
    // Not up, or 0.96 % would be 1.0 % and yet too little.
    const double percent = std::floor(1000 * gain + 1e-6) / 10 + 0.0;  // + 0.0: no negative zero
    if (gain >= kLeastGain) {
        plan.reason = fmt::format("interleaving is predicted to save {:.1f} % of a step", percent);
        return plan;
    }
    plan.reason = fmt::format("interleaving is predicted to save {:.1f} % of a step, less than {:.0f} %",
                              percent, 100 * kLeastGain);
    return without_interleaving(std::move(plan));
}

// Without pairs of its own: they are issued by turns.
StrandPlan turns_of_strands(const std::vector<StepOps>& steps, const ScheduleTable& table,
                            const StepCosts& costs) {
    StrandPlan plan{.interleaves = true, .costs = costs.source, .fingerprint = costs.fingerprint};
    plan.predicted = predict(steps, table, plan, costs);
    return judged(std::move(plan));
}

}  // namespace

StrandPlan interleaved_plan(const std::vector<StepOps>& steps, const ScheduleTable& table,
                            const StepCosts& costs, const PairPlannerOptions& options) {
    StrandPlan plan{.interleaves = true, .costs = costs.source, .fingerprint = costs.fingerprint};
    PairsOfStep pairs(plan, costs, options);
    for (const auto& step : steps) pairs.add(step, table);
    plan.predicted = predict(steps, table, plan, costs);
    return plan;
}

StrandPlan plan_strands(const std::vector<StepOps>& steps, const ScheduleTable& table, const StepCosts& costs,
                        const PairPlannerOptions& options) {
    const auto least = std::max(2, table.pipeline.ranks);
    if (table.micro_batches < least)
        return unplanned(
            costs, fmt::format("{} micro-batch(es), interleaving needs {}", table.micro_batches, least));
    auto plan = interleaved_plan(steps, table, costs, options);
    if (plan.pairs.empty()) return unplanned(costs, "the schedule has no pair that could be planned");
    return judged(std::move(plan));
}

StrandPlan without_interleaving(StrandPlan plan) {
    plan.interleaves = plan.halves_micro_batches = false;
    plan.pairs.clear();
    return plan;
}

std::vector<StrandPlan> candidate_plans(const std::vector<StepOps>& steps, const ScheduleTable& table,
                                        const StepCosts& costs, std::size_t most, double spare_layers) {
    std::vector<StrandPlan> candidates{plan_strands(steps, table, costs, {.spare_layers = spare_layers})};
    const bool is_possible = candidates.front().predicted.event_seconds > 0;
    if (most <= 1 || !is_possible) return candidates;
    for (PairPlannerOptions options : {PairPlannerOptions{.chain_layers = 2},
                                       {.chain_layers = 1},
                                       {.moves_weight_gradients = false},
                                       {.has_barriers = true}}) {
        options.spare_layers = spare_layers;
        candidates.push_back(plan_strands(steps, table, costs, options));
    }
    candidates.push_back(turns_of_strands(steps, table, costs));
    const StrandPlan none = candidates.front();
    std::erase_if(candidates, [](const StrandPlan& plan) { return !plan.interleaves; });
    if (candidates.empty()) return {none};
    std::ranges::stable_sort(candidates, {},
                             [](const StrandPlan& plan) { return plan.predicted.event_seconds; });
    std::vector<StrandPlan> different;
    for (StrandPlan& plan : candidates) {
        const auto same = [&](const StrandPlan& other) { return other.hash() == plan.hash(); };
        if (different.size() < most && std::ranges::none_of(different, same))
            different.push_back(std::move(plan));
    }
    return different;
}

}  // namespace atl
