#include "cli/command.h"

namespace atl::cli {

void add_config_options(CLI::App& verb, ConfigOptions& options) {
    verb.add_option("config", options.file, "The run's TOML file")->required()->type_name("CONFIG");
    verb.add_option("--set", options.overrides, "Override a key (repeatable)")
        ->type_name("TABLE.KEY=VALUE")
        ->allow_extra_args(false);
}

RunConfig load(const Context& context, const ConfigOptions& options) {
    LoadedConfig loaded = load_config(*context.files, {.file = options.file, .overrides = options.overrides});
    for (const std::string& notice : loaded.notices) context.log.warning("{}", notice);
    return std::move(loaded.config);
}

std::string version() {
    return ATOLL_VERSION;
}

}  // namespace atl::cli
