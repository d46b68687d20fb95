// `atoll bench CONFIG`: how fast one island trains: one rank beside the matmul peak of the same run, several beside
// what they do without overlap, over the links of this machine or over one of a given rate. Its subverbs measure one
// part each.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/link_rate.h"
#include "cli/verbs.h"
#include "cli/worker_command.h"
#include "core/child_process.h"
#include "core/error.h"
#include "program/op_profile.h"

namespace atl::cli {
namespace {

constexpr const char* kHostPrefix = "rank";  // of the network namespaces that --link makes

struct BenchOptions {
    ConfigOptions config;
    std::int64_t steps = 10;
    std::int64_t threads = 1;
    std::string link;
    std::string hosts;
    std::filesystem::path picture;
    std::filesystem::path trace;
    std::filesystem::path profile;
    bool replay = false;
    bool ingredients = false;
    bool json = false;
};

// What the worker and this program both take.
std::vector<std::string> arguments_of(const BenchOptions& options) {
    std::vector<std::string> arguments{"bench",     options.config.file.string(),
                                       "--steps",   std::to_string(options.steps),
                                       "--threads", std::to_string(options.threads)};
    for (const auto& value : options.config.overrides) arguments.insert(arguments.end(), {"--set", value});
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) arguments.insert(arguments.end(), {name, value});
    };
    add("--link", options.link);
    add("--svg", options.picture.string());
    add("--trace", options.trace.string());
    add("--profile", options.profile.string());
    if (options.replay) arguments.push_back("--replay");
    if (options.ingredients) arguments.push_back("--ingredients");
    if (options.json) arguments.push_back("--json");
    return arguments;
}

// The same bench once more, on two hosts that netlab joins by such a link.
int bench_over_link(const BenchOptions& options, std::int64_t ranks) {
    const double mbit = parse_mbit_per_s(options.link);
    if (ranks != 2)
        throw UserError(
            fmt::format("[bench] --link joins two ranks, and this island has {}; netlab joins more, "
                        "for --hosts",
                        ranks));
    if (::geteuid() != 0)
        throw UserError("[bench] --link needs root: it joins network namespaces by a link of that rate");
    std::vector<std::string> command{
        "netlab", "--kernel",  "--rate-mbit", fmt::format("{}", mbit),
        "--name", kHostPrefix, "--",          (program_directory() / "atoll").string()};
    const auto again = arguments_of(options);
    command.insert(command.end(), again.begin(), again.end());
    command.insert(command.end(), {"--hosts", kHostPrefix});
    return run_sister(command);
}

int bench(Context& context, const BenchOptions& options) {
    if (options.config.file.empty())
        throw UserError("[bench] CONFIG or one of the subverbs is required: see --help");
    const RunConfig config = load_config(*context.files, {.file = options.config.file,
                                                          .overrides = options.config.overrides,
                                                          .check_files = false})
                                 .config;
    const IslandConfig& island = config.sites.front().island;
    const std::int64_t ranks = island.ranks;
    if (ranks == 1) {
        if (!options.picture.empty() || !options.trace.empty() || !options.link.empty() ||
            !options.profile.empty() || options.replay || options.ingredients)
            throw UserError(
                "[bench] --svg, --trace, --link, --profile, --replay and --ingredients are about how ranks "
                "overlap: island.ranks must be above 1");
        return run_worker(arguments_of(options));
    }
    if ((options.replay || options.ingredients) &&
        (island.schedule != "strands" || island.strand_order != "planned"))
        throw UserError(
            fmt::format("[bench] --replay and --ingredients are for planned strands: island.schedule = "
                        "\"{}\", island.strand_order = \"{}\"",
                        island.schedule, island.strand_order));
    if (!options.profile.empty() && context.files->exists(options.profile))
        op_profile_from_json(context.files->read_text(options.profile), options.profile.string());
    if (!options.link.empty() && options.hosts.empty()) return bench_over_link(options, ranks);
    return run_island(arguments_of(options), ranks, options.threads, options.hosts);
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
    const auto options = std::make_shared<BenchOptions>();
    CLI::App& verb = *app.add_subcommand("bench", "Speed and memory of one island on random tokens");
    add_config_options(verb, options->config);
    verb.get_option("config")->required(false);  // not for the subverbs
    add_bench_exchange(verb, context);
    add_bench_kernels(verb, context);
    add_bench_outer(verb, context);
    verb.add_option("--steps,--turns", options->steps,
                    "Timed steps; of several ranks: turns, each a step of every executor")
        ->check(whole_number_between(1, 1'000'000))
        ->capture_default_str();
    verb.add_option("--threads", options->threads, "Compute threads")
        ->check(whole_number_between(1, 1024))
        ->capture_default_str();
    verb.add_option("--link", options->link,
                    "Of two ranks: join them by a link of this rate, such as 300M, 1G or 3Gbit (needs root)")
        ->type_name("RATE");
    verb.add_option("--hosts", options->hosts,
                    "Of several ranks: rank i runs in the network namespace PREFIXi, which netlab made")
        ->type_name("PREFIX");
    verb.add_option("--svg", options->picture, "Of several ranks: draw one step, planned and measured")
        ->check(writable_file());
    verb.add_option("--trace", options->trace, "The same for Perfetto (ui.perfetto.dev)")
        ->check(writable_file());
    verb.add_option(
            "--profile", options->profile,
            "Of several ranks: keep the times of ops in this file, and use them again where they hold")
        ->check(writable_file());
    verb.add_flag("--replay", options->replay,
                  "Of planned strands: try the best few plans and take the fastest, as a run does");
    verb.add_flag("--ingredients", options->ingredients,
                  "Of planned strands: what each part of the planner gives, predicted and measured");
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, &verb, options] {
        if (!verb.get_subcommands().empty()) return;  // a subverb was chosen
        context.command = [&context, options] { return bench(context, *options); };
    });
}

}  // namespace atl::cli
