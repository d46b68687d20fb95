// `atoll simulate`: what a step or a run would take on other machines and links. Its subverbs do the work.
#include "cli/simulate.h"

namespace atl::cli {

void add_simulate(CLI::App& app, Context& context) {
    CLI::App& verb =
        *app.add_subcommand("simulate", "What a step or a run would take elsewhere, on a simulated clock");
    add_simulate_geo(verb, context);
    add_simulate_strands(verb, context);
    verb.require_subcommand(1);
}

}  // namespace atl::cli
