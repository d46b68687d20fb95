// `atoll simulate`: what a step or a run would take on other machines and links. Its subverbs do the work.
#include "cli/simulate.h"

#include <fmt/ranges.h>

#include "config/nearest_name.h"
#include "core/error.h"

namespace atl::cli {

namespace {

// A word that is none of the subverbs.
int complain(const CLI::App& verb) {
    std::vector<std::string> names;
    for (const CLI::App* subverb : verb.get_subcommands([](const CLI::App*) { return true; }))
        names.emplace_back(subverb->get_name());
    const auto words = verb.remaining();
    if (words.empty()) throw UserError(fmt::format("[simulate] one of {} is required", fmt::join(names, ", ")));
    throw UserError(fmt::format("[simulate] {}: unknown; nearest: {} (atoll simulate --help lists them)",
                                words.front(), nearest_name(words.front(), names)));
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
    CLI::App& verb =
        *app.add_subcommand("simulate", "What a step or a run would take elsewhere, on a simulated clock");
    add_simulate_geo(verb, context);
    add_simulate_strands(verb, context);
    verb.allow_extras();
    verb.callback([&context, &verb] {
        if (verb.get_subcommands().empty() || !verb.remaining().empty())
            context.command = [&verb] { return complain(verb); };
    });
}

}  // namespace atl::cli
