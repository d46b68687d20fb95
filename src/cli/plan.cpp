// `atoll plan CONFIG`: how the strands of a step are interleaved, what is predicted of it, and why.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "cli/link_rate.h"
#include "cli/plan_report.h"
#include "cli/verbs.h"
#include "core/error.h"

namespace atl::cli {
namespace {

struct PlanOptions {
    ConfigOptions config;
    std::filesystem::path profile;
    std::filesystem::path picture;
    std::filesystem::path output;
    std::string link_rate;
    bool ingredients = false;
    bool json = false;
};

// Of a processor core of these years and ranks on one machine, where nothing was measured.
MachineRates typical_rates(const PlanOptions& options) {
    MachineRates rates = kTypicalRates;
    if (!options.link_rate.empty()) {
        const double bytes_per_second = parse_mbit_per_s(options.link_rate) * 1e6 / 8;
        rates.link_intra.bytes_per_second = rates.link_inter.bytes_per_second = bytes_per_second;
        rates.point_to_point.bytes_per_second = bytes_per_second;
    }
    return rates;
}

StepCosts costs_for(const Context& context, const PlanOptions& options,
                    const ProfileFingerprint& fingerprint) {
    if (options.profile.empty()) return costs_of(typical_rates(options), fingerprint);
    if (!options.link_rate.empty())
        throw UserError("[plan] --link is for the cost model: a profile knows its links");
    const auto profile =
        op_profile_from_json(context.files->read_text(options.profile), options.profile.string());
    if (const auto stale = difference(fingerprint, profile.fingerprint); !stale.empty())
        throw UserError(fmt::format("[plan] {} is stale: {}", options.profile.string(), stale));
    return costs_of(profile);
}

int plan(const Context& context, const PlanOptions& options) {
    const RunConfig config = load_config(*context.files, {.file = options.config.file,
                                                          .overrides = options.config.overrides,
                                                          .check_files = false})
                                 .config;
    const StepToPlan step = emit_steps(config, config.sites.front().island);
    const StepCosts costs = costs_for(context, options, step.whole.fingerprint);
    const auto begin = std::chrono::steady_clock::now();
    PlanReport report{
        .step = step,
        .plan = plans_of_step(step.whole, step.halves ? &*step.halves : nullptr, costs, 1).front()};
    report.planning_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    add_figures(report, costs);
    if (options.ingredients)
        report.ingredients = plan_ingredients(step.whole.ranks.front(), step.whole.table, costs);
    if (!options.output.empty()) context.files->write_text_atomically(options.output, to_json(report.plan));
    if (!options.picture.empty())
        context.files->write_text_atomically(options.picture, picture_of(report, config.run.name));
    fmt::print("{}", options.json ? json_of(report) : text_of(report));
    return kSuccess;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
    const auto options = std::make_shared<PlanOptions>();
    CLI::App& verb = *app.add_subcommand("plan", "How strands will be interleaved, what that gains and why");
    add_config_options(verb, options->config);
    verb.add_option("--profile", options->profile, "Measured times of ops; else those of a cost model")
        ->check(readable_file());
    verb.add_option("--link", options->link_rate,
                    "Rate of the cost model's links, such as 300M or 1G bits/s");
    verb.add_option("--svg", options->picture, "Draw the predicted step")->check(writable_file());
    verb.add_option("--out", options->output, "Write the plan to this file, for island.plan")
        ->check(writable_file());
    verb.add_flag("--ingredients", options->ingredients, "What each part of the planner gives");
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback(
        [&context, options] { context.command = [&context, options] { return plan(context, *options); }; });
}

}  // namespace atl::cli
