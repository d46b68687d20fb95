#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace atl::cli {
namespace {

CLI::Validator number_that(std::function<bool(double)> fits, const std::string& rule) {
    return CLI::Validator(
        [fits = std::move(fits), rule](const std::string& text) {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && fits(value)) return std::string();
            return fmt::format("{} is no number {}", text, rule);
        },
        rule);
}

}  // namespace

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

std::string coordinator_address(const Context& context, const std::string& where) {
    const std::filesystem::path file = std::filesystem::path(where) / "coordinator.address";
    if (context.files->exists(file)) return context.files->read_text(file);
    if (context.files->exists(where)) {
        throw UserError(fmt::format("{} holds no coordinator.address: no run was started in it", where));
    }
    if (where.find(':') == std::string::npos) {
        throw UserError(fmt::format("{} is neither a run directory nor HOST:PORT", where));
    }
    return where;
}

CLI::Validator at_least(std::int64_t least) {
    return CLI::Validator(
        [least](const std::string& text) {
            std::int64_t value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= least) return std::string();
            return fmt::format("{} is no whole number from {} on", text, least);
        },
        fmt::format(">= {}", least));
}

CLI::Validator whole_number_between(std::int64_t least, std::int64_t most) {
    return CLI::Validator(
        [=](const std::string& text) {
            std::int64_t value = 0;
            if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most)
                return std::string();
            return fmt::format("{} is no whole number from {} to {}", text, least, most);
        },
        fmt::format("{} - {}", least, most));
}

std::vector<std::string> given_options(const CLI::App& verb, const std::vector<std::string>& but_for) {
    std::vector<std::string> names;
    for (const CLI::Option* option : verb.get_options())
        if (option->count() > 0 && std::ranges::find(but_for, option->get_name()) == but_for.end())
            names.push_back(option->get_name());
    return names;
}

CLI::Validator number_between(double least, double most) {
    return number_that([=](double value) { return value >= least && value <= most; },
                       fmt::format("{} - {}", least, most));
}

CLI::Validator number_from_zero() {
    return number_that([](double value) { return value >= 0 && std::isfinite(value); }, ">= 0");
}

CLI::Validator number_above_zero() {
    return number_that([](double value) { return value > 0 && std::isfinite(value); }, "> 0");
}

std::string version() {
    return ATOLL_VERSION;
}

}  // namespace atl::cli
