// `atoll validate CONFIG`: checks a config and prints it resolved.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "config/key_table.h"
#include "core/error.h"

namespace atl::cli {
namespace {

struct ValidateOptions {
    ConfigOptions config;
    bool keys = false;
    bool json = false;
};

int print_report(const std::vector<std::string>& problems) {
    const nlohmann::json report = {{"valid", problems.empty()}, {"problems", problems}};
    fmt::print("{}\n", report.dump(2));
    return problems.empty() ? kSuccess : kWrongInput;
}

int validate_for_machines(const Context& context, const ConfigOptions& options) {
    try {
        load(context, options);
    } catch (const UserError& error) {
        return print_report(error.problems());
    }
    return print_report({});
}

int validate(const Context& context, const ValidateOptions& options) {
    if (options.keys) {
        fmt::print("{}", key_table_markdown());
        return kSuccess;
    }
    if (options.config.file.empty()) throw UserError("[validate] a CONFIG is needed, or --keys");
    if (options.json) return validate_for_machines(context, options.config);
    const RunConfig config = load(context, options.config);
    if (config.data.train.empty())
        context.log.info("data.train is empty: this config can be benchmarked, not trained");
    fmt::print("{}", to_toml(config));
    return kSuccess;
}

}  // namespace

void add_validate(CLI::App& app, Context& context) {
    const auto options = std::make_shared<ValidateOptions>();
    CLI::App& verb = *app.add_subcommand("validate", "Check a config and print it resolved");
    add_config_options(verb, options->config);
    verb.get_option("config")->required(false);
    verb.add_flag("--keys", options->keys, "Print every key there is, as configs/README.md lists them");
    verb.add_flag("--json", options->json, "Print {valid, problems} instead of the config");
    verb.callback([&context, options] {
        context.command = [&context, options] { return validate(context, *options); };
    });
}

}  // namespace atl::cli
