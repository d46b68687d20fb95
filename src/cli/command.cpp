#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/output_path.h"
#include "program/strand_plan.h"

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

// That the plans and profiles which a config names are some: which step they are for, the run looks at itself.
void check_strand_files(const FileSystem& files, const RunConfig& config) {
    std::set<std::string> problems;
    const auto check = [&](const std::string& file, const auto& parse) {
        try {
            parse(files.read_text(file), file);
        } catch (const UserError& error) {
            problems.insert(error.problems().begin(), error.problems().end());
        } catch (const WorldError& error) {
            problems.insert(fmt::format("[plan] {}", error.what()));
        }
    };
    for (const SiteConfig& site : config.sites) {
        if (!site.island.plan.empty()) check(site.island.plan, strand_plan_from_json);
        if (site.island.names_profile_file()) check(site.island.profile, op_profile_from_json);
    }
    if (!problems.empty()) throw UserError(std::vector(problems.begin(), problems.end()));
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
    check_strand_files(*context.files, loaded.config);
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

CLI::Validator readable_file() {
    return CLI::Validator(
        [](const std::string& text) {
            std::error_code error;
            if (!std::filesystem::exists(text, error)) return fmt::format("{}: no such file", text);
            if (!std::filesystem::is_regular_file(text, error))
                return fmt::format("{} is no regular file", text);
            return ::access(text.c_str(), R_OK) == 0 ? "" : fmt::format("{} can't be read", text);
        },
        "");
}

CLI::Validator existing_folder() {
    return CLI::Validator(
        [](const std::string& text) {
            std::error_code error;
            if (std::filesystem::is_directory(text, error)) return std::string();
            return fmt::format("{} {}", text,
                               std::filesystem::exists(text, error) ? "is no folder" : "doesn't exist");
        },
        "");
}

CLI::Validator writable_file() {
    return CLI::Validator([](const std::string& text) { return why_unwritable(text); }, "");
}

CLI::Validator writable_folder() {
    return CLI::Validator([](const std::string& text) { return why_unwritable_folder(text); }, "");
}

std::string version() {
    return ATOLL_VERSION;
}

}  // namespace atl::cli
