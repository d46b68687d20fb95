// `atoll simulate geo`: compute utilization of sites far apart, and days to a budget of tokens.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/link_rate.h"
#include "cli/simulate.h"
#include "config/model_preset.h"
#include "config/nearest_name.h"
#include "config/wire_codec.h"
#include "core/error.h"
#include "model/flops.h"
#include "model/tensors.h"
#include "simulator/cluster.h"
#include "simulator/geo_run.h"
#include "simulator/line_chart.h"
#include "simulator/published_utilization.h"

namespace atl::cli {
namespace {

constexpr double kDayMs = 86'400'000;  // no round trip takes longer

using nlohmann::json;

// What was given wins over CONFIG, and CONFIG over these defaults.
struct GeoOptions {
    ConfigOptions config;
    std::optional<int> sites;
    std::optional<std::string> model;
    std::string cluster = "a800";
    double model_flops_utilization = 0.5;
    std::optional<double> step_seconds;
    std::optional<double> tokens_per_step;
    std::string link = "1G";
    double round_trip_ms = 50;
    std::optional<int> inner_steps;
    std::optional<int> fragments;
    std::optional<int> overlap_steps;
    std::optional<std::string> codec;
    std::optional<double> tokens;
    std::filesystem::path picture;
    bool published = false;
    bool json = false;
};

ModelShape model_of(const std::string& preset) {
    const auto model = model_preset(preset);
    if (!model)
        throw UserError(fmt::format("[simulate] {}: unknown model; nearest: {}", preset,
                                    nearest_name(preset, model_preset_names())));
    return shape_of(*model);
}

// Model and outer loop; without a CONFIG DiLoCo's defaults for the preset.
struct Asked {
    ModelShape shape;
    double tokens_per_step = 1 << 20;
    int sites = 2;
    FragmentSchedule schedule{.inner_steps = 100};
    std::string codec = "int8";
};

Asked asked(const Context& context, const GeoOptions& options) {
    Asked result;
    if (!options.config.file.empty()) {
        const auto config = load_config(*context.files, {.file = options.config.file,
                                                         .overrides = options.config.overrides,
                                                         .check_files = false})
                                .config;
        result.shape = shape_of(config.model);
        result.tokens_per_step =
            static_cast<double>(config.train.sequences_per_step * config.model.context);
        result.sites = static_cast<int>(config.sites.size());
        result.schedule = {static_cast<int>(config.outer.inner_steps),
                           static_cast<int>(config.outer.fragments),
                           static_cast<int>(config.outer.overlap_steps)};
        result.codec = wire_codec(config.exchange).name;
    }
    if (options.model) result.shape = model_of(*options.model);
    if (result.shape.layers == 0) throw UserError("[simulate] CONFIG or --model is needed");
    result.sites = options.sites.value_or(result.sites);
    result.tokens_per_step = options.tokens_per_step.value_or(result.tokens_per_step);
    result.schedule.inner_steps = options.inner_steps.value_or(result.schedule.inner_steps);
    if (result.schedule.inner_steps == 0)
        throw UserError(
            "[simulate] outer.inner_steps = \"auto\": give the H to simulate with --inner-steps; `atoll tune` "
            "proposes one");
    result.schedule.fragments = options.fragments.value_or(result.schedule.fragments);
    result.schedule.overlap_steps = options.overlap_steps.value_or(result.schedule.overlap_steps);
    result.codec = options.codec.value_or(result.codec);
    return result;
}

GeoRun geo_run(const Context& context, const GeoOptions& options) {
    const auto& cluster = cluster_from_name(options.cluster);
    const Asked wish = asked(context, options);
    const double flops_per_token = forward_flops_per_token(wish.shape, wish.shape.context) +
                                   backward_flops_per_token(wish.shape, wish.shape.context);
    const double site_flops_per_second =
        cluster.accelerators * cluster.peak_flops_per_second * options.model_flops_utilization;
    const double step_seconds =
        options.step_seconds.value_or(wish.tokens_per_step * flops_per_token / site_flops_per_second);
    GeoRun run{.parameters = static_cast<double>(parameter_count(wish.shape)),
               .layers = static_cast<std::int32_t>(wish.shape.layers),
               .step_seconds = std::vector<double>(static_cast<std::size_t>(wish.sites), step_seconds),
               .tokens_per_step = wish.tokens_per_step,
               .link_bits_per_second = 1e6 * parse_mbit_per_s(options.link),
               .round_trip_seconds = options.round_trip_ms / 1000,
               .schedule = wish.schedule,
               .codec = wish.codec};
    run.token_budget = options.tokens.value_or(20 * run.parameters);
    return run;
}

json to_json(const GeoRun& run, const OuterChoice& choice) {
    auto chosen = run;
    chosen.schedule = choice.schedule;
    chosen.codec = choice.codec;
    const auto prediction = predict(chosen);
    return {{"method", choice.name},
            {"codec", choice.codec},
            {"inner_steps", choice.schedule.inner_steps},
            {"fragments", choice.schedule.fragments},
            {"overlap_steps", choice.schedule.overlap_steps},
            {"payload_bytes_per_round", prediction.payload_bytes_per_round},
            {"exchange_seconds", prediction.exchange_seconds},
            {"latency_seconds", prediction.latency_seconds},
            {"compute_utilization", prediction.compute_utilization},
            {"tokens_per_second", prediction.tokens_per_second},
            {"days", prediction.days}};
}

// Utilization over the rate of the link, one curve a choice.
std::string utilization_picture(const GeoRun& run, const std::vector<OuterChoice>& choices) {
    LineChart chart{.title = fmt::format("simulated compute utilization, {} sites, {:.3g} parameters", run.sites(),
                                         run.parameters),
                    .x_label = "Gbit/s of each site",
                    .y_label = "%",
                    .logarithmic_x = true,
                    .curves = {}};
    for (const auto& choice : choices) {
        ChartCurve curve{fmt::format("{} {}", choice.name, choice.codec), {}, choice.schedule.fragments == 1};
        for (double gbit = 0.01; gbit < 1100; gbit *= std::pow(10, 0.25)) {
            auto chosen = run;
            chosen.schedule = choice.schedule;
            chosen.codec = choice.codec;
            chosen.link_bits_per_second = gbit * 1e9;
            curve.points.push_back({gbit, 100 * predict(chosen).compute_utilization});
        }
        chart.curves.push_back(std::move(curve));
    }
    return to_svg(chart);
}

int compare_with_published(const GeoOptions& options) {
    const auto rates = required_rates();
    const auto hours = run_hours();
    const auto measured = measured_utilization();
    const auto errors = errors_of(rates, hours, measured);
    if (!options.json) {
        fmt::print("{}\n{}\n{}\n{}", print(rates), print(hours), print(measured), print(errors));
        return kSuccess;
    }
    json object{{"simulated", true}, {"rates", json::array()}, {"hours", json::array()}};
    for (const auto& row : rates)
        object["rates"].push_back({{"source", row.source},
                                   {"name", row.name},
                                   {"utilization", kUtilizationTargets},
                                   {"published_gbit_per_second", row.published_gbit_per_second},
                                   {"simulated_gbit_per_second", row.simulated_gbit_per_second}});
    for (const auto& row : hours)
        object["hours"].push_back({{"name", row.name},
                                   {"published_hours", row.published_hours},
                                   {"simulated_hours", row.simulated_hours}});
    for (const auto& row : measured)
        object["measured"].push_back({{"inner_steps", row.inner_steps},
                                      {"gbit_per_second", row.gbit_per_second},
                                      {"measured_utilization", row.measured},
                                      {"simulated_utilization", row.simulated}});
    object["least_rate_ratio"] = errors.least_ratio;
    object["greatest_rate_ratio"] = errors.greatest_ratio;
    object["mean_rate_ratio_error"] = errors.mean_ratio_error;
    object["greatest_hours_error"] = errors.greatest_hours_error;
    object["greatest_points_error"] = errors.greatest_points_error;
    fmt::print("{}\n", object.dump(2));
    return kSuccess;
}

int simulate_geo(const Context& context, const GeoOptions& options) {
    if (options.published) return compare_with_published(options);
    const auto run = geo_run(context, options);
    const auto choices = outer_choices(run);
    if (!options.picture.empty())
        context.files->write_text_atomically(options.picture, utilization_picture(run, choices));
    if (options.json) {
        json object{{"simulated", true},
                    {"sites", run.sites()},
                    {"parameters", run.parameters},
                    {"step_seconds", run.step_seconds.front()},
                    {"tokens_per_step", run.tokens_per_step},
                    {"link_bits_per_second", run.link_bits_per_second},
                    {"round_trip_seconds", run.round_trip_seconds},
                    {"token_budget", run.token_budget}};
        for (const auto& choice : choices) object["choices"].push_back(to_json(run, choice));
        fmt::print("{}\n", object.dump(2));
        return kSuccess;
    }
    fmt::print("simulated: {} sites, {:.4g} parameters, {:.3g} s and {:.4g} tokens a step and site, {:.4g} Gbit/s, "
               "round trip {:.3g} ms, {:.4g} tokens in all\n{}",
               run.sites(), run.parameters, run.step_seconds.front(), run.tokens_per_step,
               run.link_bits_per_second / 1e9, 1000 * run.round_trip_seconds, run.token_budget,
               print_geo_table(run, choices));
    return kSuccess;
}

void add_island_options(CLI::App& verb, GeoOptions& options) {
    verb.add_option("--sites", options.sites, "Number of equal sites; otherwise CONFIG's, or 2")
        ->check(whole_number_between(1, 4096));
    verb.add_option("--model", options.model, "A preset, instead of CONFIG's model");
    verb.add_option("--cluster", options.cluster, "Each site's island: a40 or a800, 64 of them")
        ->capture_default_str();
    verb.add_option("--mfu", options.model_flops_utilization, "Share of the island's peak that a step reaches")
        ->check(number_between(0.001, 1.0))
        ->capture_default_str();
    verb.add_option("--step-seconds", options.step_seconds, "Compute of an inner step, instead of --cluster's")
        ->check(number_between(1e-9, 1e9));
    verb.add_option("--tokens-per-step", options.tokens_per_step, "Of one site; otherwise CONFIG's, or 2^20")
        ->check(number_between(1, 1e15));
    verb.add_option("--tokens", options.tokens, "Budget of all sites; otherwise 20 per parameter")
        ->check(number_between(1, 1e20));
}

void add_outer_options(CLI::App& verb, GeoOptions& options) {
    verb.add_option("--link", options.link, "Rate of each site's link, each way: 200M, 1G, 10Gbit")
        ->capture_default_str();
    verb.add_option("--round-trip", options.round_trip_ms, "Milliseconds between two sites")
        ->check(number_between(0, kDayMs))
        ->capture_default_str();
    verb.add_option("--inner-steps", options.inner_steps, "H; otherwise CONFIG's, or 100")
        ->check(whole_number_between(1, 100'000));
    verb.add_option("--fragments", options.fragments, "Otherwise CONFIG's, or 1")
        ->check(whole_number_between(1, 100'000));
    verb.add_option("--overlap-steps", options.overlap_steps, "τ; otherwise CONFIG's, or 0")
        ->check(whole_number_between(0, 100'000));
    verb.add_option("--codec", options.codec, "Otherwise CONFIG's, or int8");
}

}  // namespace

void add_simulate_geo(CLI::App& simulate, Context& context) {
    const auto options = std::make_shared<GeoOptions>();
    CLI::App& verb = *simulate.add_subcommand("geo", "Sites far apart: compute utilization, days to a token budget");
    add_config_options(verb, options->config);
    verb.get_option("config")->required(false);
    add_island_options(verb, *options);
    add_outer_options(verb, *options);
    verb.add_option("--svg", options->picture, "Draw utilization over the link's rate")
        ->check(writable_file());
    verb.add_flag("--published", options->published, "Published tables beside the simulator's figures instead");
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, &verb, options] {
        if (const auto ignored = given_options(verb, {"--json", "--published"}); options->published && !ignored.empty())
            throw UserError(fmt::format("[simulate] {} beside --published: the published runs are as they are",
                                        fmt::join(ignored, ", ")));
        context.command = [&context, options] { return simulate_geo(context, *options); };
    });
}

}  // namespace atl::cli
