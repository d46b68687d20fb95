// `atoll bench CONFIG`: how fast one island trains, beside the matmul peak of the same run. Its subverbs measure one
// part each.
#include "cli/verbs.h"
#include "cli/worker_command.h"
#include "core/error.h"

namespace atl::cli {
namespace {

struct BenchOptions {
    ConfigOptions config;
    std::int64_t steps = 10;
    std::int64_t threads = 1;
    bool json = false;
};

int bench(const BenchOptions& options) {
    if (options.config.file.empty())
        throw UserError("[bench] CONFIG or one of the subverbs is required: see --help");
    std::vector<std::string> arguments{"bench",     options.config.file.string(),
                                       "--steps",   std::to_string(options.steps),
                                       "--threads", std::to_string(options.threads)};
    for (const auto& value : options.config.overrides) arguments.insert(arguments.end(), {"--set", value});
    if (options.json) arguments.push_back("--json");
    return run_worker(arguments);
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
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, &verb, options] {
        if (!verb.get_subcommands().empty()) return;  // a subverb was chosen
        context.command = [options] { return bench(*options); };
    });
}

}  // namespace atl::cli
