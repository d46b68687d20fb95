// `atoll bench CONFIG`: how fast one island trains: one rank beside the matmul peak of the same run, several beside
// what they would do without overlap. Its subverbs measure one part each.
#include "cli/verbs.h"
#include "cli/worker_command.h"
#include "core/error.h"

namespace atl::cli {
namespace {

struct BenchOptions {
    ConfigOptions config;
    std::int64_t steps = 10;
    std::int64_t threads = 1;
    std::filesystem::path picture;
    std::filesystem::path trace;
    bool json = false;
};

int bench(Context& context, const BenchOptions& options) {
    if (options.config.file.empty())
        throw UserError("[bench] CONFIG or one of the subverbs is required: see --help");
    std::vector<std::string> arguments{"bench",     options.config.file.string(),
                                       "--steps",   std::to_string(options.steps),
                                       "--threads", std::to_string(options.threads)};
    for (const auto& value : options.config.overrides) arguments.insert(arguments.end(), {"--set", value});
    if (options.json) arguments.push_back("--json");
    const RunConfig config = load_config(*context.files, {.file = options.config.file,
                                                          .overrides = options.config.overrides,
                                                          .check_files = false})
                                 .config;
    const std::int64_t ranks = config.sites.front().island.ranks;
    if (ranks == 1) {
        if (!options.picture.empty() || !options.trace.empty())
            throw UserError("[bench] --svg and --trace show how ranks overlap: island.ranks must be above 1");
        return run_worker(arguments);
    }
    if (!options.picture.empty()) arguments.insert(arguments.end(), {"--svg", options.picture.string()});
    if (!options.trace.empty()) arguments.insert(arguments.end(), {"--trace", options.trace.string()});
    return run_island(arguments, ranks, options.threads);
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
    const auto options = std::make_shared<BenchOptions>();
    CLI::App& verb = *app.add_subcommand("bench", "Speed and memory of one island on random tokens");
    add_config_options(verb, options->config);
    verb.get_option("config")->required(false);  // not for the subverbs
    add_bench_exchange(verb, context);
    add_bench_kernels(verb, context);
    verb.add_option("--steps", options->steps, "Timed steps")->check(at_least(1))->capture_default_str();
    verb.add_option("--threads", options->threads, "Compute threads")
        ->check(at_least(1))
        ->capture_default_str();
    verb.add_option("--svg", options->picture, "Of several ranks: draw one step, planned and measured");
    verb.add_option("--trace", options->trace, "The same for Perfetto (ui.perfetto.dev)");
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, &verb, options] {
        if (!verb.get_subcommands().empty()) return;  // a subverb was chosen
        context.command = [&context, options] { return bench(context, *options); };
    });
}

}  // namespace atl::cli
