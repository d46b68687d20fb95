// `atoll`: parses the command line, runs the chosen verb, turns errors into messages and exit codes.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "cli/option_errors.h"
#include "cli/verbs.h"
#include "core/error.h"

namespace atl::cli {
namespace {

void add_verbs(CLI::App& app, Context& context) {
    add_bench(app, context);
    add_coordinator(app, context);
    add_eval(app, context);
    add_export(app, context);
    add_import(app, context);
    add_plan(app, context);
    add_prepare(app, context);
    add_run(app, context);
    add_set(app, context);
    add_simulate(app, context);
    add_status(app, context);
    add_tune(app, context);
    add_validate(app, context);
    add_version(app, context);
}

int run(int argc, char** argv) {
    Context context;
    CLI::App app{"Trains language models on islands of processors joined by slow links.", "atoll"};
    app.require_subcommand(1);
    add_verbs(app, context);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) throw explain(app, error);
        return app.exit(error);  // help, on standard output
    }
    return context.command();
}

// Not with fmt::print, which throws where nobody reads any more, as when the terminal is gone.
int run_and_report(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const UserError& error) {
        std::fputs(fmt::format("{}\n", error.what()).c_str(), stderr);
        return kWrongInput;
    } catch (const std::exception& error) {
        std::fputs(fmt::format("{}\n", error.what()).c_str(), stderr);
        return kRunFailed;
    }
}

}  // namespace
}  // namespace atl::cli

int main(int argc, char** argv) {
    // Compute threads of the processes started here: a thread that waits for another looks for it for some 50 µs and then
    // sleeps. By default it looks for milliseconds, which takes the processor from the one that it waits for wherever
    // the machine has other work: evaluation took ten times as much processor time there.
    if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
    return atl::cli::run_and_report(argc, argv);
}
