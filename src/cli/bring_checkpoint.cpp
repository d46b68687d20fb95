#include "cli/bring_checkpoint.h"

#include <fmt/format.h>

#include "checkpoint/checkpoint.h"
#include "core/error.h"

namespace atl::cli {
namespace {

namespace fs = std::filesystem;

// The database, and what SQLite keeps beside it after a kill.
constexpr const char* kRecords[] = {"coordinator.sqlite", "coordinator.sqlite-wal"};

void copy_tree(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::copy(from, to, fs::copy_options::recursive, error);
    if (error)
        throw StorageError(
            fmt::format("[run] can't copy {} to {}: {}", from.string(), to.string(), error.message()));
}

}  // namespace

void bring_checkpoint(FileSystem& files, const fs::path& step, const fs::path& run_directory) {
    const auto refuse = [&](const std::string& why) {
        throw UserError(fmt::format("--resume {}: {}", step.string(), why));
    };
    if (!files.exists(step)) refuse("no such checkpoint; auto and none are the other choices");
    const fs::path from = fs::canonical(step);
    const fs::path name = from.filename();
    const fs::path checkpoints = from.parent_path();
    bool found = false;
    for (const auto& checkpoint : find_checkpoints(files, checkpoints))
        found = found || checkpoint.path.filename() == name;
    if (!found || checkpoints.filename() != "checkpoints")
        refuse("must be one step of a run, RUN/checkpoints/step_N");
    const fs::path own = fs::weakly_canonical(run_directory / "checkpoints");
    if (checkpoints == own) return;

    if (files.exists(own) && !files.list(own).empty())
        refuse(
            fmt::format("{} holds checkpoints of its own; choose another --run-dir", run_directory.string()));
    const fs::path record = checkpoints.parent_path() / kRecords[0];
    if (!files.exists(record))
        refuse(fmt::format("{} is missing, the record of its rounds", record.string()));
    for (const char* file : kRecords) {
        files.remove_all(run_directory / file);
        if (files.exists(checkpoints.parent_path() / file))
            copy_tree(checkpoints.parent_path() / file, run_directory / file);
    }
    // Whole or not at all, like every checkpoint.
    files.create_directories(own);
    const fs::path partial = run_directory / "resumed.partial";
    files.remove_all(partial);
    copy_tree(checkpoints / name, partial);
    files.rename(partial, own / name);
}

}  // namespace atl::cli
