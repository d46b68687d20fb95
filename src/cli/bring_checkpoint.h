// `--resume PATH`: a run goes on from one step's checkpoint, of its own directory or of another run's.
#pragma once

#include <filesystem>

#include "core/file_system.h"

namespace atl::cli {

// `step`: RUN/checkpoints/step_N. Of another run's directory it is copied to `run_directory`, and with it the
// coordinator's record of the rounds, which says what the checkpoint belongs to; the directory must hold no run yet.
// Errors: UserError for a path that is none of these, StorageError. Cost: one copy of the checkpoint.
void bring_checkpoint(FileSystem& files, const std::filesystem::path& step,
                      const std::filesystem::path& run_directory);

}  // namespace atl::cli
