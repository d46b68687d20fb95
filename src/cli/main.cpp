// `atoll`: parses the command line, runs the chosen verb, turns errors into messages and exit codes.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "cli/verbs.h"
#include "config/nearest_name.h"
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

// CLI11 only says that a verb is missing when it doesn't know one.
void check_verb(const CLI::App& app, const std::string& word) {
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
        if (names.emplace_back(verb->get_name()) == word || verb->check_name(word)) return;
    if (!word.starts_with('-'))
        throw UserError(fmt::format("{}: unknown verb; nearest: {} (atoll --help lists them)", word,
                                    nearest_name(word, names)));
}

int run(int argc, char** argv) {
    Context context;
    CLI::App app{"Trains language models on islands of processors joined by slow links.", "atoll"};
    app.require_subcommand(1);
    app.failure_message(CLI::FailureMessage::simple);
    add_verbs(app, context);
    if (argc > 1) check_verb(app, argv[1]);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // CLI11 prints help to standard output and everything else to standard error.
        return app.exit(error) == 0 ? kSuccess : kWrongInput;
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
