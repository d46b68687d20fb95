#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

constexpr const char* kStepPrefix = "step_";
constexpr const char* kSitePrefix = "site_";
constexpr const char* kDeletedPrefix = "deleted_";

// What rank_R must have in common with rank_0.
auto common_facts(const Manifest& manifest) {
    const auto& metadata = manifest.metadata;
    return std::tuple(manifest.part.site, manifest.part.ranks, metadata.run_id, metadata.step, metadata.round,
                      metadata.incarnation);
}

// Other sites of this machine prune too: a directory that went meanwhile holds nothing.
std::vector<std::filesystem::path> list_if_there(const FileSystem& files,
                                                 const std::filesystem::path& directory) try {
    return files.list(directory);
} catch (const StorageError&) {
    if (files.exists(directory)) throw;
    return {};
}

// First out of sight, then away: a kill in between leaves no half-removed checkpoint.
void remove_site(FileSystem& files, const std::filesystem::path& step, const std::string& site) {
    const auto directory = site_directory(step, site);
    const auto deleted = step / (kDeletedPrefix + directory.filename().string());
    if (files.exists(deleted)) files.remove_all(deleted);
    if (files.exists(directory)) {
        files.rename(directory, deleted);
        files.remove_all(deleted);
    }
    if (list_if_there(files, step).empty()) files.remove_all(step);
}

}  // namespace

std::string site_problem(const FileSystem& files, const std::filesystem::path& site_directory) try {
    const Manifest first = load_manifest(files, part_directory(site_directory, Rank(0)));
    for (Rank rank(1); rank.value() < first.part.ranks; rank = rank.next()) {
        const Manifest other = load_manifest(files, part_directory(site_directory, rank));
        if (common_facts(other) != common_facts(first))
            return fmt::format("rank {} wrote another run, step, round or incarnation than rank 0", rank);
    }
    return {};
} catch (const WorldError& error) {
    return error.what();
}

std::vector<FoundSite> find_sites(const FileSystem& files, const std::filesystem::path& step_directory) {
    std::vector<FoundSite> sites;
    for (const auto& path : list_if_there(files, step_directory)) {
        const std::string name = path.filename().string();
        if (!name.starts_with(kSitePrefix)) continue;
        sites.push_back({name.substr(std::string(kSitePrefix).size()), path, site_problem(files, path)});
    }
    return sites;
}

bool FoundCheckpoint::complete_for(const std::string& site) const {
    return std::any_of(sites.begin(), sites.end(),
                       [&](const FoundSite& found) { return found.name == site && found.complete(); });
}

std::filesystem::path checkpoint_directory(const std::filesystem::path& checkpoints, Step step) {
    return checkpoints / fmt::format("{}{}", kStepPrefix, step);
}

std::vector<FoundCheckpoint> find_checkpoints(const FileSystem& files,
                                              const std::filesystem::path& checkpoints) {
    std::vector<FoundCheckpoint> found;
    if (!files.exists(checkpoints)) return found;
    for (const auto& path : files.list(checkpoints)) {
        const Step step(number_after(kStepPrefix, path));
        if (step.value() >= 0) found.push_back({path, step, find_sites(files, path)});
    }
    std::ranges::sort(found, std::greater(), &FoundCheckpoint::step);
    return found;
}

void prune_checkpoints(FileSystem& files, const std::filesystem::path& checkpoints, const std::string& site,
                       int keep) {
    ATOLL_CHECK(keep >= 2, "keep {} checkpoints", keep);
    int complete = 0;
    for (const auto& checkpoint : find_checkpoints(files, checkpoints)) {
        if (complete >= keep) remove_site(files, checkpoint.path, site);
        if (checkpoint.complete_for(site)) ++complete;
    }
}

}  // namespace atl
