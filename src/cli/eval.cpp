// `atoll eval CKPT --data FILE`: the mean loss of a checkpoint over all next tokens.
#include "cli/verbs.h"
#include "cli/worker_command.h"

namespace atl::cli {
namespace {

struct EvalOptions {
    std::string checkpoint;
    std::vector<std::string> data;
    std::int64_t windows = 0;
    std::int64_t threads = 1;
    bool json = false;
};

int eval(const EvalOptions& options) {
    std::vector<std::string> arguments{"eval",      options.checkpoint,
                                       "--windows", std::to_string(options.windows),
                                       "--threads", std::to_string(options.threads)};
    for (const auto& file : options.data) arguments.insert(arguments.end(), {"--data", file});
    if (options.json) arguments.push_back("--json");
    return run_worker(arguments);
}

}  // namespace

void add_eval(CLI::App& app, Context& context) {
    const auto options = std::make_shared<EvalOptions>();
    CLI::App& verb = *app.add_subcommand("eval", "Mean loss of a checkpoint over data");
    verb.add_option("checkpoint", options->checkpoint, "A checkpoint, a step of one, or a folder of steps")
        ->required()
        ->type_name("CKPT");
    verb.add_option("--data", options->data, "Token shards: .bin files and globs of them; repeatable")
        ->required()
        ->type_name("FILE")
        ->allow_extra_args(false);
    verb.add_option("--windows", options->windows, "At most so many windows; 0 = all")->check(at_least(0));
    verb.add_option("--threads", options->threads, "Compute threads")->check(whole_number_between(1, 1024));
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, options] { context.command = [options] { return eval(*options); }; });
}

}  // namespace atl::cli
