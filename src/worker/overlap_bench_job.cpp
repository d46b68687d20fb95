#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "island/overlap_bench.h"
#include "metrics/progress.h"
#include "program/trace.h"
#include "worker/island_connections.h"
#include "worker/jobs.h"

namespace atl {
namespace {

// Of a serial step: below it, what communication costs drowns in the noise of steps.
constexpr double kLeastShare = 0.02;
constexpr std::size_t kNamedOps = 3;

struct Figures {
    double serial_seconds = 0;
    double speedup = 0;
    double barrier_speedup = 0;
    double predicted_speedup = 0;
    double communication_share = 0;  // of a serial step
    double hidden_share = 0;  // of communication and of what ranks wait for one another to begin with it
};

Figures figures_of(const OverlapBenchResult& result) {
    const ModeFigures& serial = result.of(ExecutionMode::serial);
    const ModeFigures& event = result.of(ExecutionMode::event);
    const double saved = serial.median_seconds - event.median_seconds;
    const double hideable = result.communication_seconds + result.waiting_seconds;
    return {.serial_seconds = serial.median_seconds,
            .speedup = serial.median_seconds / event.median_seconds,
            .barrier_speedup = serial.median_seconds / result.of(ExecutionMode::barrier).median_seconds,
            .predicted_speedup = serial.predicted_seconds / event.predicted_seconds,
            .communication_share = result.communication_seconds / serial.median_seconds,
            .hidden_share = hideable > 0 ? saved / hideable : 0};
}

// What interleaving may take: 3 % above the serial step, or what one layer keeps if that is more.
std::int64_t allowed_bytes(const OverlapBenchResult& result) {
    const std::int64_t serial = result.of(ExecutionMode::serial).peak_bytes_measured;
    return serial + std::max(serial * 3 / 100, result.layer_bytes);
}

nlohmann::ordered_json to_json(const OverlapBenchResult& result) {
    const Figures figures = figures_of(result);
    nlohmann::ordered_json json{{"tokens_per_step", result.tokens_per_step}};
    for (const ModeFigures& mode : result.modes) {
        const std::string prefix(name(mode.mode));
        json[prefix + "_step_seconds"] = mode.step_seconds;
        json[prefix + "_median_seconds"] = mode.median_seconds;
        json[prefix + "_predicted_seconds"] = mode.predicted_seconds;
        json[prefix + "_profile_predicted_seconds"] = mode.profile_predicted_seconds;
        json[prefix + "_link_cpu_seconds"] = mode.link_cpu_seconds;
    }
    const ModeFigures& serial = result.of(ExecutionMode::serial);
    const ModeFigures& event = result.of(ExecutionMode::event);
    json["speedup"] = figures.speedup;
    json["barrier_speedup"] = figures.barrier_speedup;
    json["predicted_speedup"] = figures.predicted_speedup;
    json["bound"] = result.bound;
    json["attainable"] = result.attainable;
    json["comm_share"] = figures.communication_share;
    json["comm_seconds"] = result.communication_seconds;
    json["compute_seconds"] = result.compute_seconds;
    json["waiting_seconds"] = result.waiting_seconds;
    json["hidden_share"] = figures.hidden_share;
    json["overlap_effectiveness"] = result.effectiveness;
    json["gradients_bit_equal"] = result.gradients_bit_equal;
    json["parameters_bit_equal"] = result.parameters_bit_equal;
    json["peak_bytes_serial"] = serial.peak_bytes_measured;
    json["peak_bytes_interleaved"] = event.peak_bytes_measured;
    json["peak_bytes_predicted"] = event.peak_bytes_predicted;
    json["peak_bytes_layer"] = result.layer_bytes;
    json["peak_bytes_allowed"] = allowed_bytes(result);
    for (const TriedPlan& tried : result.tried)
        json["tried"].push_back({{"plan", tried.plan.interleaves ? tried.plan.hash() : "serial"},
                                 {"predicted_seconds", tried.predicted_seconds()},
                                 {"median_seconds", tried.median_seconds}});
    for (const IngredientFigures& ingredient : result.ingredients)
        json["ingredients"].push_back({{"name", ingredient.name},
                                       {"predicted_seconds", ingredient.predicted_seconds},
                                       {"median_seconds", ingredient.median_seconds}});
    json["profile_measured"] = result.profile.measured;
    json["uncertain_ops"] = uncertain_ops(result.profile.profile);
    json["plan"] = result.plan;
    json["not_interleaved"] = result.why_not_interleaved;
    json["final_loss"] = result.final_loss;
    return json;
}

std::string readable(std::int64_t bytes) {
    return human_bytes(static_cast<double>(bytes));
}

void print_ingredients(const std::vector<IngredientFigures>& ingredients) {
    const IngredientFigures& serial = ingredients.front();
    fmt::print("{:<28} {:>12} {:>8} {:>12} {:>8}\n", "what each ingredient gives", "predicted s", "",
               "measured s", "");
    for (const IngredientFigures& one : ingredients)
        fmt::print("  {:<26} {:>12.4f} {:>7.3f}x {:>12.4f} {:>7.3f}x\n", one.name, one.predicted_seconds,
                   serial.predicted_seconds / one.predicted_seconds, one.median_seconds,
                   serial.median_seconds / one.median_seconds);
}

void print_table(const OverlapBenchResult& result) {
    const Figures figures = figures_of(result);
    fmt::print("{:<10} {:>12} {:>12} {:>12} {:>9} {:>10} {:>12}\n", "executor", "median s", "predicted s",
               "by profile", "speedup", "tokens/s", "link CPU s");
    for (const ModeFigures& mode : result.modes)
        fmt::print("{:<10} {:>12.4f} {:>12.4f} {:>12.4f} {:>8.2f}x {:>10.0f} {:>12.4f}\n", name(mode.mode),
                   mode.median_seconds, mode.predicted_seconds, mode.profile_predicted_seconds,
                   figures.serial_seconds / mode.median_seconds,
                   static_cast<double>(result.tokens_per_step) / mode.median_seconds, mode.link_cpu_seconds);
    const auto hidden = figures.communication_share < kLeastShare
                            ? std::string("too little to tell what of it is hidden")
                            : fmt::format("{:.1f} % of it hidden", 100 * figures.hidden_share);
    fmt::print("communication {:.1f} % of a serial step, waiting for the other rank to begin {:.1f} %, {}\n",
               100 * figures.communication_share, 100 * result.waiting_seconds / figures.serial_seconds,
               hidden);
    fmt::print("gradients {}, parameters {}\n", result.gradients_bit_equal ? "equal to the bit" : "DIFFER",
               result.parameters_bit_equal ? "too" : "DIFFER");
    fmt::print("at best {:.2f}x were all hidden, {:.2f}x by known plans at the profiled overlap of {:.2f}\n",
               result.bound, result.attainable, result.effectiveness);
    const ModeFigures& event = result.of(ExecutionMode::event);
    fmt::print(
        "memory of the fullest rank {} serial, {} interleaved ({} predicted; 3 % or a layer's {} more is "
        "{}{})\n",
        readable(result.of(ExecutionMode::serial).peak_bytes_measured), readable(event.peak_bytes_measured),
        readable(event.peak_bytes_predicted), readable(result.layer_bytes), readable(allowed_bytes(result)),
        result.plan.empty() ? ", to which only plans are held" : "");
    fmt::print("profile {}\n", result.profile.measured ? "measured: " + result.profile.why : "as kept");
    const auto uncertain = uncertain_ops(result.profile.profile);
    for (std::size_t i = 0; i < std::min(uncertain.size(), kNamedOps); ++i)
        fmt::print("  uncertain: {}\n", uncertain[i]);
    if (uncertain.size() > kNamedOps)
        fmt::print("  and {} shorter ops of {}\n", uncertain.size() - kNamedOps,
                   result.profile.profile.ops.size());
    if (!result.plan.empty()) fmt::print("plan: {}\n", result.plan);
    for (const TriedPlan& tried : result.tried)
        fmt::print("  tried: {:<8} {:>10.4f} s, predicted {:>10.4f}\n",
                   tried.plan.interleaves ? tried.plan.hash().substr(0, 8) : "serial", tried.median_seconds,
                   tried.predicted_seconds());
    if (!result.ingredients.empty()) print_ingredients(result.ingredients);
    if (!result.why_not_interleaved.empty()) fmt::print("not interleaved: {}\n", result.why_not_interleaved);
}

}  // namespace

int run_overlap_bench_job(const BenchJob& job, FileSystem& files) {
    const RunConfig& config = job.config;
    const IslandOptions island = island_options(config, config.sites.front().island, job.threads);
    const IslandConnections connections({.rank = Rank(job.rank),
                                         .ranks = job.ranks,
                                         .directory = job.rendezvous,
                                         .timeout = Milliseconds(config.timeouts.startup_ms)},
                                        island);
    const auto result = run_overlap_bench({.island = island,
                                           .steps = job.steps,
                                           .seed = static_cast<std::uint64_t>(config.run.seed),
                                           .links = job.link.empty() ? "gloo" : "gloo " + job.link,
                                           .profile_file = job.profile,
                                           .replays = job.replays,
                                           .ingredients = job.ingredients},
                                          connections.links(), files);
    if (!result) return 0;
    if (!job.picture.empty()) {
        Gantt picture = make_gantt(result->programs, result->timings);
        picture.title = fmt::format("{}: one step, planned and measured", config.run.name);
        files.write_text_atomically(job.picture, to_svg(picture));
    }
    if (!job.trace.empty())
        files.write_text_atomically(job.trace, chrome_trace(result->programs, result->timings));
    if (job.json)
        fmt::print("{}\n", to_json(*result).dump(2));
    else
        print_table(*result);
    const bool good = result->gradients_bit_equal && result->parameters_bit_equal;
    return good && result->why_not_interleaved.empty() ? 0 : 1;
}

}  // namespace atl
