// `atoll tune RUN_DIR|CONFIG`: how often the sites of a run should exchange, from what its rounds cost, or from figures
// given for a run that has not begun.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/run_costs.h"
#include "cli/verbs.h"
#include "codec/codec.h"
#include "config/wire_codec.h"
#include "coordinator/round_tuner.h"
#include "coordinator/run_options.h"
#include "core/error.h"
#include "model/model_shape.h"
#include "model/tensors.h"
#include "outer/codec_choices.h"
#include "simulator/line_chart.h"

namespace atl::cli {
namespace {

struct TuneOptions {
    std::filesystem::path where;
    std::vector<std::string> overrides;
    double step_seconds = 0;
    double rate_mbit = 0;
    double round_trip_ms = 0;
    std::filesystem::path picture;
    bool json = false;
};

struct MeasuredUtilization {
    std::int64_t inner_steps = 0;
    double compute_utilization = 0;
};

// What is tuned: the figures, and what was measured to hold against them.
struct Case {
    TunerInput input;
    std::int64_t sites = 0;
    double elements = 0;
    std::int64_t layers = 0;       // of the model: at most as many fragments
    std::int64_t inner_steps = 0;  // in use; 0: auto, and no round yet
    std::vector<MeasuredUtilization> measured;
};

Case of_run(const Context& context, const TuneOptions& options) {
    if (!options.overrides.empty())
        throw UserError(fmt::format(
            "[tune] --set goes with the TOML file of a run to come; {} was measured with the settings that "
            "it has (`atoll set` changes them)",
            options.where.string()));
    const RunConfig config =
        load_config(*context.files, {.file = options.where / "config.toml", .check_files = false}).config;
    const RunCosts found = run_costs(context, options.where, config.run.name);
    const auto measured = measured_rounds(found.costs);
    if (!measured)
        throw WorldError(fmt::format("[tune] no round of {} has been measured yet: try again after the first",
                                     options.where.string()));
    RunNumbers numbers = run_numbers(config);
    if (!found.codec.empty()) numbers.method.codec = found.codec;
    Case result{.input = tuner_input(*measured, numbers, config.outer.fragments), .sites = measured->sites};
    result.layers = shape_of(config.model).layers;
    result.elements = elements_of(measured->raw_bytes, measured->sites, numbers.method.codec);
    for (const auto& [site, history] : found.costs)
        for (const RoundCost& cost : history) result.inner_steps = cost.inner_steps;
    std::map<std::int64_t, bool> seen;
    for (const auto& [site, history] : found.costs)
        for (const RoundCost& cost : history) seen[cost.inner_steps] = true;
    for (const auto& [steps, yes] : seen)
        if (const auto rounds = measured_rounds(found.costs, steps))
            result.measured.push_back({steps, rounds->compute_utilization});
    return result;
}

Case of_config(const Context& context, const TuneOptions& options) {
    if (options.step_seconds <= 0 || options.rate_mbit <= 0)
        throw UserError(
            fmt::format("[tune] {} has not run: give --step-seconds (`atoll bench CONFIG` measures it) and "
                        "--rate-mbit, the slowest site's",
                        options.where.string()));
    const RunConfig config =
        load_config(*context.files,
                    {.file = options.where, .overrides = options.overrides, .check_files = false})
            .config;
    const RunNumbers numbers = run_numbers(config);
    Case result{.sites = static_cast<std::int64_t>(config.sites.size())};
    result.elements = static_cast<double>(parameter_count(shape_of(config.model)));
    result.layers = shape_of(config.model).layers;
    result.inner_steps = config.outer.inner_steps;
    result.input.step_seconds = options.step_seconds;
    result.input.inner_steps = inner_step_candidates(numbers.total_steps);
    result.input.codecs = {
        {numbers.method.codec, round_bytes(numbers.method.codec, result.elements, result.sites), 0}};
    result.input.streams = {{config.outer.fragments, config.outer.overlap_steps, numbers.a_round_late}};
    result.input.loss = loss_model(result.sites, static_cast<double>(numbers.total_steps));
    return result;
}

// What the command line says wins over what was measured.
void apply_figures(const TuneOptions& options, TunerInput& input) {
    if (options.step_seconds > 0) input.step_seconds = options.step_seconds;
    if (options.rate_mbit > 0) input.bits_per_second = 1e6 * options.rate_mbit;
    if (options.round_trip_ms > 0) input.round_trip_seconds = 1e-3 * options.round_trip_ms;
}

// The dense codecs and some streams, for what the run could also be. What sparse ones lose depends on the run too much to
// be recommended unseen.
TunerDecision with_all_choices(const Case& tuned) {
    TunerInput input = tuned.input;
    const std::string used = input.codecs.front().name;
    for (const CodecChoice& codec : codec_choices(tuned.elements, tuned.sites)) {
        const bool is_used = codec_from_name(codec.name).id() == codec_from_name(used).id();
        if (is_used) input.codecs.front().loss_penalty = codec.loss_penalty;
        if (!is_used && !is_gathered(codec_from_name(codec.name))) input.codecs.push_back(codec);
    }
    for (const std::int64_t fragments : {1, 2, 4, 8})
        for (const std::int64_t overlap : {1, 2, 5})
            if (fragments <= tuned.layers) input.streams.push_back({fragments, overlap});
    return tune(input);
}

nlohmann::json point_json(const TunerPoint& point) {
    return {{"inner_steps", point.inner_steps},
            {"codec", point.codec.name},
            {"fragments", point.stream.fragments},
            {"overlap_steps", point.stream.overlap_steps},
            {"stall_seconds", point.stall_seconds},
            {"compute_utilization_predicted", point.compute_utilization},
            {"time_to_equal_loss", std::exp(point.log_time)}};
}

nlohmann::json report(const Case& tuned, const TunerDecision& decision, const TunerDecision& freely) {
    nlohmann::json curve = nlohmann::json::array();
    for (const TunerPoint& point : decision.curve) curve.push_back(point_json(point));
    nlohmann::json measured = nlohmann::json::array();
    for (const MeasuredUtilization& point : tuned.measured) {
        const TunerPoint predicted =
            predict(tuned.input, point.inner_steps, tuned.input.codecs.front(), tuned.input.streams.front());
        measured.push_back({{"inner_steps", point.inner_steps},
                            {"compute_utilization", point.compute_utilization},
                            {"compute_utilization_predicted", predicted.compute_utilization}});
    }
    return {{"inner_steps_in_use", tuned.inner_steps},
            {"sites", tuned.sites},
            {"step_seconds", tuned.input.step_seconds},
            {"bits_per_second", tuned.input.bits_per_second},
            {"round_trip_seconds", tuned.input.round_trip_seconds},
            {"own_seconds", tuned.input.own_seconds},
            {"payload_bytes", tuned.input.codecs.front().bytes},
            {"best", point_json(decision.best)},
            {"reason", decision.reason},
            {"best_of_dense_choices", point_json(freely.best)},
            {"curve", curve},
            {"measured", measured}};
}

void print_tune_report(const nlohmann::json& json, const TunerDecision& freely) {
    fmt::print("{}\n", json["reason"].get<std::string>());
    if (!json["measured"].empty()) fmt::print("{:>8} {:>12} {:>12}\n", "H", "predicted", "measured");
    for (const auto& point : json["measured"]) {
        fmt::print("{:>8} {:>10.1f} % {:>10.1f} %\n", point["inner_steps"].get<std::int64_t>(),
                   100 * point["compute_utilization_predicted"].get<double>(),
                   100 * point["compute_utilization"].get<double>());
    }
    fmt::print("In use: H = {}. With every dense codec and stream to choose from: {}\n",
               json["inner_steps_in_use"].get<std::int64_t>() == 0
                   ? "auto"
                   : std::to_string(json["inner_steps_in_use"].get<std::int64_t>()),
               freely.reason);
}

std::string draw(const Case& tuned, const TunerDecision& decision) {
    LineChart chart{.title = fmt::format("H = {} reaches a given loss soonest", decision.best.inner_steps),
                    .x_label = "inner steps in a round (H)",
                    .y_label = "share",
                    .logarithmic_x = true,
                    .curves = {{"compute, predicted", {}, false},
                               {"compute, measured", {}, true},
                               {"speed to equal loss, of the best", {}, false}}};
    for (const TunerPoint& point : decision.curve) {
        const auto steps = static_cast<double>(point.inner_steps);
        chart.curves[0].points.push_back({steps, point.compute_utilization});
        chart.curves[2].points.push_back({steps, std::exp(decision.best.log_time - point.log_time)});
    }
    for (const MeasuredUtilization& point : tuned.measured)
        chart.curves[1].points.push_back({static_cast<double>(point.inner_steps), point.compute_utilization});
    std::erase_if(chart.curves, [](const ChartCurve& curve) { return curve.points.empty(); });
    return to_svg(chart);
}

int tune_run(const Context& context, const TuneOptions& options) {
    const bool has_run = context.files->exists(options.where / "config.toml");
    Case tuned = has_run ? of_run(context, options) : of_config(context, options);
    apply_figures(options, tuned.input);
    const TunerDecision decision = tune(tuned.input);
    const TunerDecision freely = with_all_choices(tuned);
    if (!options.picture.empty())
        context.files->write_text_atomically(options.picture, draw(tuned, decision));
    const nlohmann::json json = report(tuned, decision, freely);
    if (options.json) {
        fmt::print("{}\n", json.dump());
    } else {
        print_tune_report(json, freely);
    }
    return kSuccess;
}

}  // namespace

void add_tune(CLI::App& app, Context& context) {
    const auto options = std::make_shared<TuneOptions>();
    CLI::App& verb = *app.add_subcommand("tune", "How often the sites of a run should exchange, and why");
    verb.add_option("where", options->where, "Run directory, or the TOML file of a run to come")
        ->required()
        ->type_name("RUN_DIR|CONFIG");
    verb.add_option("--set", options->overrides, "Override a key of the TOML file (repeatable)")
        ->type_name("TABLE.KEY=VALUE")
        ->allow_extra_args(false);
    verb.add_option("--step-seconds", options->step_seconds, "Of one inner step; default: as measured")
        ->check(number_between(1e-9, 1e9));
    verb.add_option("--rate-mbit", options->rate_mbit, "Mbit/s of the slowest site; default: as measured")
        ->check(number_between(1e-3, 1e9));
    verb.add_option("--round-trip-ms", options->round_trip_ms, "Between the sites; default: as measured")
        ->check(number_between(1e-6, 86'400'000));
    verb.add_option("--svg", options->picture, "Draw the curve")->check(writable_file());
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, options] {
        context.command = [&context, options] { return tune_run(context, *options); };
    });
}

}  // namespace atl::cli
