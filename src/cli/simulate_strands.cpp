// `atoll simulate strands`: interleaved micro-batches on clusters: published steps, one set-up, or sweeps around it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/simulate.h"
#include "config/model_preset.h"
#include "config/nearest_name.h"
#include "core/error.h"
#include "simulator/predicted_steps.h"
#include "simulator/schedule_sweep.h"

namespace atl::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostLayers = 65'536;  // of all micro-batches: some 12 GB in all schedules

struct StrandsOptions {
    std::string model = "llama-7b";
    std::string cluster = "a40";
    std::int32_t tp = 8;
    std::int64_t context = 4096;
    std::int64_t layers = 16;
    SweepPoint point;
    std::string schedule;
    bool step = false;
    bool all_ranks = false;
    bool sweep = false;
    std::filesystem::path pictures;
    bool json = false;
};

// JSON has no infinity: in a sweep, a method without a schedule for a point has null.
json finite(const std::vector<double>& values) {
    json list = json::array();
    for (const auto value : values) list.push_back(std::isfinite(value) && value > 0 ? json(value) : json());
    return list;
}

json method_names() {
    json names = json::array();
    for (const auto& method : schedule_methods()) names.push_back(method.name);
    return names;
}

int print_published(const StrandsOptions& options) {
    const auto predicted = predict_published_steps();
    if (!options.json) {
        fmt::print("{}", print(predicted));
        return kSuccess;
    }
    const auto errors = errors_of(predicted);
    json object{{"simulated", true},
                {"mean_absolute_error_points", errors.interleaved},
                {"mean_absolute_error_points_on", errors.interleaved_on},
                {"mean_absolute_error_points_intra_batch", errors.intra_batch},
                {"mean_absolute_error_points_side_by_side", errors.side_by_side},
                {"mean_absolute_error_points_of_mean", errors.mean_of_others}};
    for (std::size_t i = 0; i < predicted.size(); ++i) {
        const auto& row = published_steps()[i];
        object["rows"].push_back(
            {{"name", row.name},
             {"cluster", row.cluster},
             {"serial_seconds", row.serial_seconds},
             {"fitted_to_serial", row.unknown == SerialUnknown::links ? "links" : "compute"},
             {"factor", predicted[i].factor},
             {"communication_share", predicted[i].communication_share},
             {"shares_of_serial_step", predicted[i].group_shares},
             {"overlap_level", predicted[i].overlap_level},
             {"published_speedup", row.speedups.interleaved},
             {"speedup", predicted[i].interleaved},
             {"intra_batch_speedup", predicted[i].intra_batch},
             {"side_by_side_speedup", predicted[i].side_by_side}});
    }
    fmt::print("{}\n", object.dump(2));
    return kSuccess;
}

void check_schedule(const StrandsOptions& options) {
    const std::string& schedule = options.schedule;
    std::vector<std::string> names;
    for (const auto& method : schedule_methods()) names.push_back(schedule_of(method));
    if (!schedule.empty() && std::ranges::find(names, schedule) == names.end())
        throw UserError(fmt::format("[simulate] {}: unknown schedule; nearest: {}", schedule,
                                    nearest_name(schedule, names)));
    if (schedule == "interleaved" && options.point.pipeline_ranks == 1)
        throw UserError(
            "[simulate] --schedule interleaved needs --pp 2 or more: it is about stages of several ranks");
}

IslandStep step_of(const StrandsOptions& options) {
    const auto model = model_preset(options.model);
    if (!model)
        throw UserError(fmt::format("[simulate] {}: unknown model; nearest: {}", options.model,
                                    nearest_name(options.model, model_preset_names())));
    auto shape = shape_of(*model);
    shape.layers = options.layers;
    shape.context = std::max(shape.context, options.context);
    const auto& point = options.point;
    if (shape.layers < 2 * point.pipeline_ranks)
        throw UserError(fmt::format("[simulate] --layers {} are fewer than the {} stages of --pp {}",
                                    shape.layers, 2 * point.pipeline_ranks, point.pipeline_ranks));
    const std::int64_t emitted = options.layers * point.micro_batches * (options.all_ranks ? options.tp : 1);
    if (emitted > kMostLayers)
        throw UserError(fmt::format(
            "[simulate] --layers {} · --micro-batches {}{} are more than the {} layers of a step that "
            "memory holds",
            options.layers, point.micro_batches,
            options.all_ranks ? fmt::format(" · --tp {}", options.tp) : "", kMostLayers));
    if (options.tp > shape.heads)
        throw UserError(fmt::format("[simulate] --tp {} is more than the {} heads of {}", options.tp,
                                    shape.heads, options.model));
    return {.shape = shape, .tp = options.tp, .context = options.context, .all_ranks = options.all_ranks};
}

int print_step(const StrandsOptions& options, ScheduleSweep& sweep) {
    const auto& point = options.point;
    const auto seconds = sweep.seconds(point, options.schedule);
    const auto is_simulated = [&](std::size_t method) { return std::isfinite(seconds[method]); };
    if (options.json) {
        json methods = json::array(), simulated = json::array();
        for (std::size_t i = 0; i < seconds.size(); ++i) {
            if (!is_simulated(i)) continue;
            methods.push_back(schedule_methods()[i].name);
            simulated.push_back(seconds[i]);
        }
        const json object{{"simulated", true},
                          {"communication_share", point.communication_share},
                          {"overlap_level", point.overlap_level},
                          {"pipeline_ranks", point.pipeline_ranks},
                          {"tensor_ranks", options.tp},
                          {"micro_batches", point.micro_batches},
                          {"methods", methods},
                          {"step_seconds", simulated}};
        fmt::print("{}\n", object.dump(2));
        return kSuccess;
    }
    fmt::print(
        "simulated: {} of {} layers on {}, tp {} pp {}, {} micro-batches of {} tokens, {:.0f} % "
        "communication, "
        "overlap level {:g}\n{:<20}{:>12}{:>10}\n",
        options.model, options.layers, options.cluster, options.tp, point.pipeline_ranks, point.micro_batches,
        options.context, 100 * point.communication_share, point.overlap_level, "schedule", "step s",
        "speed-up");
    for (std::size_t i = 0; i < seconds.size(); ++i)
        if (is_simulated(i))
            fmt::print("{:<20}{:>12.4f}{:>9.3f}x\n", schedule_methods()[i].name, seconds[i],
                       seconds.front() / seconds[i]);
    return kSuccess;
}

int print_sweeps(const Context& context, const StrandsOptions& options, ScheduleSweep& schedules) {
    json object{{"simulated", true}, {"methods", method_names()}};
    const auto draw = [&](const std::string& name, const std::string& svg) {
        if (options.pictures.empty()) return;
        context.files->create_directories(options.pictures);
        context.files->write_text_atomically(options.pictures / (name + ".svg"), svg);
    };
    for (const auto& axis : sweep_axes(options.point)) {
        const auto table = sweep(schedules, axis);
        draw(axis.name, to_svg(table));
        if (!options.json) fmt::print("{}\n", print(table));
        json rows = json::array();
        for (std::size_t i = 0; i < table.speedups.size(); ++i)
            rows.push_back({{"value", axis.points[i].first}, {"speedups", finite(table.speedups[i])}});
        object["sweeps"].push_back({{"axis", axis.name}, {"rows", rows}});
    }
    for (const auto& region :
         {overlap_region(schedules, options.point), pipeline_region(schedules, options.point)}) {
        draw(fmt::format("region of {} and {}", region.row_name, region.column_name), to_svg(region));
        if (!options.json) fmt::print("{}\n", print(region));
        object["regions"].push_back({{"row", region.row_name},
                                     {"column", region.column_name},
                                     {"rows", region.rows},
                                     {"columns", region.columns},
                                     {"gains", region.gains}});
    }
    if (options.json) fmt::print("{}\n", object.dump(2));
    return kSuccess;
}

int simulate_strands(const Context& context, const StrandsOptions& options) {
    const auto& cluster = cluster_from_name(options.cluster);
    check_schedule(options);
    if (!options.step && !options.sweep) return print_published(options);
    ScheduleSweep schedules(step_of(options), rates_of(cluster, options.tp));
    return options.sweep ? print_sweeps(context, options, schedules) : print_step(options, schedules);
}

}  // namespace

void add_simulate_strands(CLI::App& simulate, Context& context) {
    const auto options = std::make_shared<StrandsOptions>();
    CLI::App& verb = *simulate.add_subcommand(
        "strands", "Interleaved micro-batches: published steps beside simulated ones, one set-up, sweeps");
    auto* step =
        verb.add_flag("--step", options->step, "One set-up in all schedules, instead of the published steps");
    auto* sweep =
        verb.add_flag("--sweep", options->sweep, "Sweeps around the set-up, and where interleaving loses")
            ->excludes(step);
    verb.add_option("--model", options->model, "A preset")->capture_default_str();
    verb.add_option("--layers", options->layers, "Of them")
        ->check(whole_number_between(2, 1024))
        ->capture_default_str();
    verb.add_option("--cluster", options->cluster, "a40 or a800")->capture_default_str();
    verb.add_option("--tp", options->tp, "Tensor-parallel ranks")
        ->check(whole_number_between(2, 256))
        ->capture_default_str();
    verb.add_option("--pp", options->point.pipeline_ranks, "Pipeline ranks")
        ->check(whole_number_between(1, 256))
        ->capture_default_str();
    verb.add_option("--micro-batches", options->point.micro_batches, "Of one sequence each")
        ->check(whole_number_between(1, 4096))
        ->capture_default_str();
    verb.add_option("--context", options->context, "Tokens of a sequence")
        ->check(whole_number_between(64, 1 << 24))
        ->capture_default_str();
    verb.add_option("--share", options->point.communication_share, "Of communication in a rank's serial work")
        ->check(number_between(0.0, 0.95))
        ->capture_default_str();
    verb.add_option("--overlap", options->point.overlap_level, "1 hides all, 0 nothing, below 0 it harms")
        ->check(number_between(-1.0, 1.0))
        ->capture_default_str();
    verb.add_option("--schedule", options->schedule, "With --step: this one beside 1f1b, instead of all")
        ->needs(step);
    verb.add_flag("--all-ranks", options->all_ranks,
                  "A program for every rank instead of one for each pipeline rank");
    verb.add_option("--svg", options->pictures, "With --sweep: a folder for pictures")
        ->check(writable_folder())
        ->needs(sweep);
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, &verb, options] {
        if (const auto ignored = given_options(verb, {"--json"});
            !options->step && !options->sweep && !ignored.empty())
            throw UserError(
                fmt::format("[simulate] {} is for --step or --sweep: the published steps are as they are",
                            fmt::join(ignored, ", ")));
        context.command = [&context, options] { return simulate_strands(context, *options); };
    });
}

}  // namespace atl::cli
