// What the verbs of `atoll` share: the context they are given, and how they hand back what is to be done.
//
// A verb is one file with one function add_VERB(app, context), listed in verbs.h and main.cpp. It declares its
// subcommand and options; the subcommand's callback sets context.command, which main runs after parsing.
// Errors: verbs throw; main prints. UserError → exit code 2, everything else → 1, neither with a stack.
// Ownership: options of a verb live in a shared_ptr captured by its callbacks, because CLI11 keeps pointers.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/load_config.h"
#include "core/file_system.h"
#include "core/log.h"

namespace atl::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kRunFailed = 1;
inline constexpr int kWrongInput = 2;

struct Context {
    std::unique_ptr<FileSystem> files = make_system_file_system();
    Log log{""};                   // standard error
    std::function<int()> command;  // set by the verb that was chosen; returns the exit code
};

// CONFIG and --set, as all verbs that read a config take them.
struct ConfigOptions {
    std::filesystem::path file;
    std::vector<std::string> overrides;
};
void add_config_options(CLI::App& verb, ConfigOptions& options);
// Loads, looks into the files of strands that it names, and logs notices.
RunConfig load(const Context& context, const ConfigOptions& options);

// Where the coordinator listens that a person means by a run directory or HOST:PORT.
std::string coordinator_address(const Context& context, const std::string& where);

// A check of an option's whole number, and what its help says.
CLI::Validator at_least(std::int64_t least);
CLI::Validator whole_number_between(std::int64_t least, std::int64_t most);
// The same of any number. CLI11's own ranges let "nan" through.
CLI::Validator number_between(double least, double most);
CLI::Validator number_from_zero();
CLI::Validator number_above_zero();

// Checks of options that name a file or folder. What a verb writes at its end is tried before it begins
// (core/output_path.h).
CLI::Validator readable_file();
CLI::Validator existing_folder();
CLI::Validator writable_file();
CLI::Validator writable_folder();

// The options that were given, but for these: what a verb in one of its modes would ignore.
std::vector<std::string> given_options(const CLI::App& verb, const std::vector<std::string>& but_for);

// The project's version, as `atoll version` prints it.
std::string version();

}  // namespace atl::cli
