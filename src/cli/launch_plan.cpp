#include "cli/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace atl {
namespace {

std::vector<SiteConfig> local_sites(const LaunchRequest& request) {
    if (!request.site) return request.config.sites;
    for (const auto& site : request.config.sites)
        if (site.name == *request.site) return {site};
    std::string known;
    for (const auto& site : request.config.sites) known += (known.empty() ? "" : ", ") + site.name;
    throw UserError(
        fmt::format("--site {}: the config names no such site; it names {}", *request.site, known));
}

ChildOptions coordinator_process(const LaunchRequest& request) {
    ChildOptions child;
    child.command = {(request.programs / "atoll").string(),
                     "coordinator",
                     "--config",
                     (request.run_directory / "config.toml").string(),
                     "--run-dir",
                     request.run_directory.string(),
                     "--resume",
                     request.resume};
    if (request.stop_at)
        child.command.insert(child.command.end(), {"--stop-at", std::to_string(*request.stop_at)});
    return child;
}

}  // namespace

LaunchPlan plan_launch(const LaunchRequest& request) {
    const auto sites = local_sites(request);
    LaunchPlan plan;
    if (!request.site || request.with_coordinator) plan.coordinator = coordinator_process(request);

    std::int64_t ranks_here = 0;
    for (const auto& site : sites) ranks_here += site.island.ranks;
    const auto processors = static_cast<std::int64_t>(request.processors.size());
    std::int64_t next_processor = 0;
    for (const auto& site : sites) {
        LaunchPlan::IslandProcesses island{.site = site.name,
                                           .restarts = static_cast<int>(site.island.restarts)};
        island.threads = site.island.threads > 0
                             ? site.island.threads
                             : std::max<std::int64_t>(1, processors / std::max<std::int64_t>(1, ranks_here));
        for (std::int64_t rank = 0; rank < site.island.ranks; ++rank) {
            ChildOptions child;
            child.command = {(request.programs / "atoll-worker").string(),
                             "train",
                             "--run-dir",
                             request.run_directory.string(),
                             "--site",
                             site.name,
                             "--threads",
                             std::to_string(island.threads),
                             "--resume",
                             request.resume};
            if (request.dump_batches && rank == 0)  // which knows the whole island's blocks
                child.command.insert(child.command.end(), {"--dump-batches", request.dump_batches->string()});
            child.environment = {{"RANK", std::to_string(rank)},
                                 {"LOCAL_RANK", std::to_string(rank)},
                                 {"WORLD_SIZE", std::to_string(site.island.ranks)}};
            // A rank gets processors of its own where there are enough for all; crowded ranks are left to the system.
            if (ranks_here * island.threads <= processors)
                for (std::int64_t i = 0; i < island.threads && next_processor < processors; ++i)
                    child.processors.push_back(
                        request.processors[static_cast<std::size_t>(next_processor++)]);
            island.ranks.push_back(std::move(child));
        }
        plan.islands.push_back(std::move(island));
    }
    return plan;
}

std::filesystem::path rendezvous_directory(const std::filesystem::path& run_directory,
                                           const std::string& site, int start) {
    return run_directory / "rendezvous" / fmt::format("{}-{}", site, start);
}

}  // namespace atl
