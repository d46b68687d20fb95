#include "cli/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"

namespace atl {
namespace {

std::string host_of(const SiteConfig& site) {
    return site.address.substr(0, site.address.rfind(':'));
}

// The sites that run on this machine, started here or each by itself: without --site all; else those that share its
// host, so that two starts don't give one processor to both.
std::vector<SiteConfig> sites_of_this_machine(const LaunchRequest& request) {
    const auto& sites = request.config.sites;
    if (!request.site) return sites;
    const auto own = std::ranges::find(sites, *request.site, &SiteConfig::name);
    if (own == sites.end()) {
        std::string known;
        for (const auto& site : sites) known += (known.empty() ? "" : ", ") + site.name;
        throw UserError(
            fmt::format("--site {}: the config names no such site; it names {}", *request.site, known));
    }
    std::vector<SiteConfig> neighbours;
    std::ranges::copy_if(sites, std::back_inserter(neighbours),
                         [&](const SiteConfig& site) { return host_of(site) == host_of(*own); });
    return neighbours;
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

ChildOptions rank_process(const LaunchRequest& request, const SiteConfig& site, std::int64_t rank,
                          std::int64_t threads) {
    ChildOptions child;
    child.command = {(request.programs / "atoll-worker").string(),
                     "train",
                     "--run-dir",
                     request.run_directory.string(),
                     "--site",
                     site.name,
                     "--threads",
                     std::to_string(threads),
                     "--resume",
                     request.resume};
    if (request.dump_batches && rank == 0)  // which knows the whole island's blocks
        child.command.insert(child.command.end(), {"--dump-batches", request.dump_batches->string()});
    child.environment = {{"RANK", std::to_string(rank)},
                         {"LOCAL_RANK", std::to_string(rank)},
                         {"WORLD_SIZE", std::to_string(site.island.ranks)}};
    return child;
}

std::int64_t threads_of(const SiteConfig& site, std::int64_t processors, std::int64_t ranks_here) {
    if (site.island.threads > 0) return site.island.threads;
    return std::max<std::int64_t>(1, processors / std::max<std::int64_t>(1, ranks_here));
}

// The processors from `first` on that a rank with so many threads gets for itself, where there are enough for all;
// crowded ranks are left to the system.
std::vector<int> own_processors(const LaunchRequest& request, std::int64_t first, std::int64_t threads,
                                std::int64_t ranks_here) {
    if (ranks_here * threads > static_cast<std::int64_t>(request.processors.size())) return {};
    const auto begin = request.processors.begin() + first;
    return {begin, begin + threads};
}

LaunchPlan plan_launched_rank(const LaunchRequest& request, const SiteConfig& site) {
    const LaunchedRank& launched = *request.launched;
    if (site.island.ranks != launched.ranks)
        throw UserError(fmt::format("[run] the launcher started {} ranks; island.ranks of site {} is {}",
                                    launched.ranks, site.name, site.island.ranks));
    LaunchPlan plan;
    const bool hosts = request.with_coordinator || request.config.sites.size() == 1;
    if (launched.rank == 0 && hosts) plan.coordinator = coordinator_process(request);
    const auto processors = static_cast<std::int64_t>(request.processors.size());
    LaunchPlan::IslandProcesses island{.site = site.name,
                                       .threads = threads_of(site, processors, launched.local_ranks),
                                       .first_rank = launched.rank,
                                       .all_ranks = launched.ranks,
                                       .meets_here = false};
    auto child = rank_process(request, site, launched.rank, island.threads);
    child.environment["LOCAL_RANK"] = std::to_string(launched.local_rank);
    child.processors =
        own_processors(request, launched.local_rank * island.threads, island.threads, launched.local_ranks);
    if (launched.meeting_port > 0) child.environment["MASTER_PORT"] = std::to_string(launched.meeting_port);
    if (!launched.meeting.empty())
        child.command.insert(
            child.command.end(),
            {"--rendezvous", (request.run_directory / "rendezvous" / launched.meeting).string()});
    island.ranks.push_back(std::move(child));
    plan.islands.push_back(std::move(island));
    return plan;
}

}  // namespace

LaunchPlan plan_launch(const LaunchRequest& request) {
    const auto sites = sites_of_this_machine(request);
    const auto starts_here = [&](const SiteConfig& site) { return !request.site || site.name == *request.site; };
    if (request.launched) {
        if (request.site || sites.size() == 1)
            return plan_launched_rank(request, *std::ranges::find_if(sites, starts_here));
        throw UserError(
            fmt::format("[run] the launcher started {} ranks of one site, and the config has {}; "
                        "say which with --site",
                        request.launched->ranks, sites.size()));
    }
    LaunchPlan plan;
    if (!request.site || request.with_coordinator) plan.coordinator = coordinator_process(request);

    std::int64_t ranks_here = 0;
    for (const auto& site : sites) ranks_here += site.island.ranks;
    const auto processors = static_cast<std::int64_t>(request.processors.size());
    std::int64_t next_processor = 0;
    for (const auto& site : sites) {
        LaunchPlan::IslandProcesses island{.site = site.name,
                                           .threads = threads_of(site, processors, ranks_here),
                                           .restarts = static_cast<int>(site.island.restarts),
                                           .all_ranks = site.island.ranks};
        for (std::int64_t rank = 0; rank < site.island.ranks; ++rank) {
            auto child = rank_process(request, site, rank, island.threads);
            child.processors = own_processors(request, next_processor, island.threads, ranks_here);
            next_processor += static_cast<std::int64_t>(child.processors.size());
            island.ranks.push_back(std::move(child));
        }
        if (starts_here(site)) plan.islands.push_back(std::move(island));
    }
    return plan;
}

std::filesystem::path rendezvous_directory(const std::filesystem::path& run_directory,
                                           const std::string& site, int start) {
    return run_directory / "rendezvous" / fmt::format("{}-{}", site, start);
}

}  // namespace atl
