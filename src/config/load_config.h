// From a TOML file to a checked RunConfig, and back.
//
// A file may begin with `include = "@base.toml"` (or a list of them), relative to itself: what it says itself
// wins. Overrides ("table.key=value", "site.NAME.key=value") win over every file. All other relative paths
// are relative to the working directory.
// Errors: everything wrong with the input, in one UserError, one line each: "file:line: key = value: rule".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "core/file_system.h"

namespace atl {

struct LoadedConfig {
    RunConfig config;
    std::vector<std::string> notices;  // what was understood although it is spelt in an old way
};

struct ConfigSource {
    std::filesystem::path file;
    std::vector<std::string> overrides;  // as given to --set
    bool check_files = true;             // files that the config names must exist
};

LoadedConfig load_config(const FileSystem& files, const ConfigSource& source);

// A resolved config with some keys of its tables changed ("table.key=value"), resolved and checked again. Files are not
// looked for.
RunConfig changed_config(const RunConfig& config, const std::vector<std::string>& assignments);

// The resolved file: every key, and load_config of it gives an equal config.
std::string to_toml(const RunConfig& config);

}  // namespace atl
