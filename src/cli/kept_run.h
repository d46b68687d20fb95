// Whether a config fits the checkpoints that a run is to go on from.
#pragma once

#include <filesystem>
#include <string>

#include "config/run_config.h"
#include "core/file_system.h"

namespace atl::cli {

// Before anything is written or started: UserError with every kept setting (config/kept_settings.h) that the newest
// checkpoint in `run_directory` was written under with another value; with `resume` a checkpoint's path, that one. A
// directory without checkpoints fits everything.
void check_kept_settings(const FileSystem& files, const std::filesystem::path& run_directory,
                         const std::string& resume, const RunConfig& config);

// Has the site the checkpoint of the run's last step? Then there is nothing left to train, whoever else is there.
bool has_finished(const FileSystem& files, const std::filesystem::path& run_directory, const std::string& site,
                  const RunConfig& config);

}  // namespace atl::cli
