#include "cli/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "metrics/progress.h"
#include "model/step_layout.h"
#include "model/training_program.h"
#include "program/gantt.h"

namespace atl::cli {
namespace {

std::string op_name(const Op& op) {
    const std::string where = op.layer >= 0 ? fmt::format(" layer {}", op.layer) : "";
    return fmt::format("{}{} of {}", name(op.kind), where, op.micro_batch);
}

// One layer of a pair: the forward of the third micro-batch and what runs beside it, or what there is of it.
std::vector<HiddenOp> pairing_of(const Program& program, const std::vector<OpTime>& times) {
    std::int32_t layers = 0, micro_batches = 0;
    for (const auto& op : program.ops) {
        layers = std::max(layers, op.layer + 1);
        micro_batches = std::max(micro_batches, op.micro_batch + 1);
    }
    const auto time_of = [&](const Op& op) { return times[static_cast<std::size_t>(op.id.value())]; };
    double begin = -1, end = 0;
    for (const auto& op : program.ops) {
        if (op.layer != layers / 2 || op.micro_batch != std::min(2, micro_batches - 1)) continue;
        const bool is_forward = op.kind == OpKind::attention || op.kind == OpKind::linear ||
                                op.kind == OpKind::add_rms_norm || op.kind == OpKind::add_layer_norm;
        if (!is_forward) continue;
        if (begin < 0) begin = time_of(op).start_seconds;
        end = time_of(op).end_seconds;
    }
    std::vector<HiddenOp> pairing;
    for (const auto& op : program.ops) {
        const auto time = time_of(op);
        const bool communicates = is_collective(op.kind) || op.kind == OpKind::receive;
        if (!communicates || time.start_seconds < begin || time.start_seconds > end) continue;
        HiddenOp hidden{op_name(op), time.end_seconds - time.start_seconds, {}, 0};
        for (const auto& other : program.ops) {
            if (other.resource != Resource::compute) continue;
            const auto its = time_of(other);
            const double both =
                std::min(its.end_seconds, time.end_seconds) - std::max(its.start_seconds, time.start_seconds);
            if (both <= 0) continue;
            hidden.beside.push_back(op_name(other));
            hidden.hidden_share += both / hidden.seconds;
        }
        pairing.push_back(std::move(hidden));
    }
    return pairing;
}

std::string bound_of(const StepPrediction& predicted) {
    const bool by_compute = predicted.compute_seconds >= predicted.communication_seconds;
    const double least = std::max(predicted.compute_seconds, predicted.communication_seconds);
    return fmt::format("{}, {:.1f} % of the planned step", by_compute ? "compute" : "communication",
                       100 * least / predicted.event_seconds);
}

double share(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

}  // namespace

StepToPlan emit_steps(const RunConfig& config, const IslandConfig& island) {
    if (island.schedule != "strands")
        throw UserError(fmt::format(
            "[plan] island.schedule is \"{}\": only \"strands\" has something to plan", island.schedule));
    const ModelShape shape = shape_of(config.model);
    const ParallelShape parallel = parallel_shape_of(island);
    const std::int64_t micro_batches =
        config.train.sequences_per_step / config.train.micro_batch / std::max<std::int64_t>(island.dp, 1);
    const auto plannable = [&](std::int64_t sequences, std::int64_t count, ScheduleOptions schedule) {
        PlannableStep step{
            .table = make_schedule_table(schedule),
            .fingerprint = fingerprint_of(shape, parallel, sequences * config.model.context,
                                          static_cast<std::int32_t>(island.threads), DType::f32),
            .bounds_memory = schedule.memory_micro_batches == 0};
        step.fingerprint.library_version = ATOLL_TORCH_VERSION;
        for (std::int32_t rank = 0; rank < parallel.ranks(); ++rank)
            step.ranks.push_back(emit_training_step(shape, {.sequences = sequences,
                                                            .context = config.model.context,
                                                            .micro_batches = static_cast<std::int32_t>(count),
                                                            .rank = Rank(rank),
                                                            .parallel = parallel,
                                                            .scratch_bytes = {}}));
        return step;
    };
    StepToPlan step{
        plannable(config.train.micro_batch, micro_batches, schedule_options_of(island, micro_batches)), {}};
    if (may_halve(shape, parallel, micro_batches, config.train.micro_batch, config.model.context)) {
        ScheduleOptions schedule = schedule_options_of(island, 2);
        schedule.memory_micro_batches = kMicroBatchesOfHalves;
        step.halves = plannable(config.train.micro_batch / 2, 2, schedule);
    }
    return step;
}

void add_figures(PlanReport& report, const StepCosts& costs) {
    std::vector<std::vector<double>> seconds;
    const PlannableStep& step = report.step.as_cut_by(report.plan);
    for (const auto& rank : step.ranks) {
        report.programs.push_back(planned_program(rank, step.table, report.plan));
        seconds.push_back(costs.op_seconds(report.programs.back()));
    }
    const auto mode = report.plan.interleaves ? ExecutionMode::event : ExecutionMode::serial;
    report.run = execute_virtually(report.programs, seconds, mode, costs.overlap);
    report.peak_bytes_serial = peak_bytes(report.step.whole, serial_plan(""));
    report.peak_bytes = report.plan.interleaves ? peak_bytes(step, report.plan) : report.peak_bytes_serial;
    report.pairing = pairing_of(report.programs.front(), report.run.ops.front());
    report.bound =
        report.plan.predicted.event_seconds > 0 ? bound_of(report.plan.predicted) : "nothing was predicted";
}

std::string text_of(const PlanReport& report) {
    const auto& plan = report.plan;
    const auto& predicted = plan.predicted;
    std::string text = fmt::format("{}: {}\ntimes from: {}\n", plan.interleaves ? "interleaved" : "serial",
                                   plan.reason, plan.costs);
    for (const auto& pair : plan.pairs)
        text += fmt::format(
            "pair {}|{}: {} + {} ops, {:.2f} ms alone, {:.2f} ms together ({:.2f}x; the bound is {:.2f}x)\n",
            print(pair.first), print(pair.second), pair.first_ops, pair.second_ops, 1e3 * pair.serial_seconds,
            1e3 * pair.seconds, pair.serial_seconds / pair.seconds,
            pair.serial_seconds / pair.busiest_seconds);
    if (predicted.event_seconds > 0) {
        text += fmt::format(
            "step {:>10.2f} ms serial\n     {:>10.2f} ms with barriers ({:.2f}x)\n"
            "     {:>10.2f} ms without ({:.2f}x)\n",
            1e3 * predicted.serial_seconds, 1e3 * predicted.barrier_seconds,
            predicted.serial_seconds / predicted.barrier_seconds, 1e3 * predicted.event_seconds,
            predicted.serial_seconds / predicted.event_seconds);
        text += fmt::format("communication {:.1f} % of a serial step, {:.1f} % of it hidden; bound by {}\n",
                            100 * share(predicted.communication_seconds, predicted.serial_seconds),
                            100 * predicted.hidden_share(), report.bound);
    }
    text += fmt::format("memory of the fullest rank {}, serial {} (kernels' scratch left out)\n",
                        human_bytes(static_cast<double>(report.peak_bytes)),
                        human_bytes(static_cast<double>(report.peak_bytes_serial)));
    if (!report.pairing.empty()) text += "one layer of rank 0:\n";
    for (const auto& hidden : report.pairing)
        text += fmt::format(
            "  {:<34} {:>8.2f} ms, {:>3.0f} % beside {}\n", hidden.name, 1e3 * hidden.seconds,
            100 * hidden.hidden_share,
            hidden.beside.empty() ? "nothing" : fmt::format("{}", fmt::join(hidden.beside, ", ")));
    if (!report.ingredients.empty()) text += "what each ingredient gives, predicted, of one pair:\n";
    for (const auto& ingredient : report.ingredients)
        text += fmt::format("  {:<28} {:>10.2f} ms {:>6.3f}x\n", ingredient.name, 1e3 * ingredient.seconds,
                            report.ingredients.front().seconds / ingredient.seconds);
    return text + fmt::format("planned in {:.2f} s, hash {}\n", report.planning_seconds, plan.hash());
}

std::string json_of(const PlanReport& report) {
    const auto& predicted = report.plan.predicted;
    nlohmann::ordered_json json{
        {"interleaves", report.plan.interleaves},
        {"halves_micro_batches", report.plan.halves_micro_batches},
        {"reason", report.plan.reason},
        {"costs", report.plan.costs},
        {"hash", report.plan.hash()},
        {"planning_seconds", report.planning_seconds},
        {"serial_seconds", predicted.serial_seconds},
        {"barrier_seconds", predicted.barrier_seconds},
        {"event_seconds", predicted.event_seconds},
        {"predicted_speedup", share(predicted.serial_seconds, predicted.event_seconds)},
        {"predicted_barrier_speedup", share(predicted.serial_seconds, predicted.barrier_seconds)},
        {"comm_share", share(predicted.communication_seconds, predicted.serial_seconds)},
        {"hidden_share", predicted.hidden_share()},
        {"bound", report.bound},
        {"attainable", share(predicted.serial_seconds,
                             std::max(predicted.compute_seconds, predicted.communication_seconds))},
        {"peak_bytes_serial", report.peak_bytes_serial},
        {"peak_bytes_predicted", report.peak_bytes}};
    json["pairs"] = nlohmann::ordered_json::array();
    for (const auto& pair : report.plan.pairs)
        json["pairs"].push_back({{"first", print(pair.first)},
                                 {"second", print(pair.second)},
                                 {"seconds", pair.seconds},
                                 {"serial_seconds", pair.serial_seconds},
                                 {"busiest_seconds", pair.busiest_seconds},
                                 {"peak_bytes", pair.peak_bytes},
                                 {"most_bytes", pair.most_bytes}});
    json["pairing"] = nlohmann::ordered_json::array();
    for (const auto& hidden : report.pairing)
        json["pairing"].push_back({{"op", hidden.name},
                                   {"seconds", hidden.seconds},
                                   {"hidden_share", hidden.hidden_share},
                                   {"beside", hidden.beside}});
    for (const auto& ingredient : report.ingredients)
        json["ingredients"].push_back({{"name", ingredient.name}, {"seconds", ingredient.seconds}});
    return json.dump(2) + "\n";
}

std::string picture_of(const PlanReport& report, const std::string& title) {
    Gantt picture = make_gantt(report.programs, {{"planned", report.run.ops}});
    picture.title = fmt::format("{}: one step, planned from the {}", title, report.plan.costs);
    return to_svg(picture);
}

}  // namespace atl::cli
