#include "cli/kept_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/checkpoint.h"
#include "config/kept_settings.h"
#include "core/error.h"
#include "data/contents.h"

namespace atl::cli {
namespace {

namespace fs = std::filesystem;

// A site of the newest step, or of the one of that name.
std::optional<fs::path> newest_site(const FileSystem& files, const fs::path& checkpoints, const std::string& step) {
    for (const auto& checkpoint : find_checkpoints(files, checkpoints)) {
        if (!step.empty() && checkpoint.path.filename() != step) continue;
        for (const auto& site : checkpoint.sites)
            if (site.complete()) return site.path;
    }
    return std::nullopt;
}

}  // namespace

void check_kept_settings(const FileSystem& files, const fs::path& run_directory, const std::string& resume,
                         const RunConfig& config) {
    if (resume == "none") return;
    const fs::path step = resume == "auto" ? fs::path() : fs::weakly_canonical(resume);
    const auto site = newest_site(files, step.empty() ? run_directory / "checkpoints" : step.parent_path(),
                                  step.filename().string());
    if (!site) return;
    const auto extra = nlohmann::json::parse(CheckpointReader(files, *site).metadata().extra);
    KeptSettings now = kept_settings(config);
    now[kDataContents] = token_contents(files, config.data.train);
    auto problems = unkept_settings(extra.value("settings", KeptSettings()), now);
    if (problems.empty()) return;
    problems.push_back(fmt::format("[run] {} can't be gone on from with other values of these: change them back, or "
                                   "begin another run with another --run-dir",
                                   site->parent_path().string()));
    throw UserError(problems);
}

bool has_finished(const FileSystem& files, const fs::path& run_directory, const std::string& site,
                  const RunConfig& config) {
    for (const auto& checkpoint : find_checkpoints(files, run_directory / "checkpoints"))
        if (checkpoint.complete_for(site)) return checkpoint.step.value() >= config.train.steps;
    return false;
}

}  // namespace atl::cli
