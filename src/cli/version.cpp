// `atoll version`.
#include <fmt/format.h>

#include "cli/verbs.h"

namespace atl::cli {

void add_version(CLI::App& app, Context& context) {
    CLI::App& verb = *app.add_subcommand("version", "Print the version");
    verb.callback([&context] {
        context.command = [] {
            fmt::print("atoll {}\n", version());
            return kSuccess;
        };
    });
}

}  // namespace atl::cli
