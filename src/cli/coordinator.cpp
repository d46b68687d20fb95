// `atoll coordinator`: serves one run's rounds until the run has ended.
#include <csignal>

#include "cli/verbs.h"
#include "coordinator/run_options.h"
#include "coordinator/server.h"
#include "core/clock.h"

namespace atl::cli {
namespace {

struct CoordinatorVerbOptions {
    ConfigOptions config;
    std::filesystem::path run_directory;
    std::string address;
    std::string http_address;
    std::string resume = "auto";
    std::optional<std::int64_t> stop_at;
};

CoordinatorServer* serving = nullptr;  // for the signal handler: a process serves one run

void ask_to_stop(int) {
    if (serving != nullptr) serving->request_stop();
}

int coordinate(const Context& context, const CoordinatorVerbOptions& options) {
    const RunConfig config = load(context, options.config);
    ServerOptions server_options;
    server_options.protocol =
        coordinator_options(config, options.stop_at ? std::optional(Step(*options.stop_at)) : std::nullopt);
    server_options.config = config;
    server_options.run_directory =
        options.run_directory.empty() ? std::filesystem::path(config.run.directory) : options.run_directory;
    server_options.address = options.address.empty() ? config.coordinator.address : options.address;
    server_options.http_address = options.http_address;
    server_options.start_over = options.resume == "none";
    Log log("coordinator");
    const SystemClock clock;
    CoordinatorServer server(server_options, clock, log);
    log.also_to(server_options.run_directory / "log.txt");
    serving = &server;
    std::signal(SIGINT, ask_to_stop);
    std::signal(SIGTERM, ask_to_stop);
    const int exit_code = server.run();
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    serving = nullptr;
    return exit_code;
}

}  // namespace

void add_coordinator(CLI::App& app, Context& context) {
    const auto options = std::make_shared<CoordinatorVerbOptions>();
    CLI::App& verb =
        *app.add_subcommand("coordinator", "Keep the membership, rounds and data ledger of one run");
    verb.add_option("--config", options->config.file, "The run's TOML file")->required();
    verb.add_option("--set", options->config.overrides, "table.key=value; may be repeated");
    verb.add_option("--run-dir", options->run_directory,
                    "Where coordinator.sqlite and coordinator.address go");
    verb.add_option("--address", options->address, "HOST:PORT to listen on; default: coordinator.address");
    verb.add_option("--http", options->http_address,
                    "HOST:PORT of the status page (GET /status); default: none");
    verb.add_option("--resume", options->resume,
                    "auto or a checkpoint's path: go on with the rounds of the database; none: forget them");
    verb.add_option("--stop-at", options->stop_at, "Stop, with a checkpoint, when this inner step is done");
    verb.callback([&context, options] {
        context.command = [&context, options] { return coordinate(context, *options); };
    });
}

}  // namespace atl::cli
