// Which processes a run on this machine consists of: pure, so that it can be shown and tested without starting any.
//
// Under torchrun, mpirun or srun each `atoll run` is one rank of one site; the first also hosts the coordinator of a run
// of one site. A dead rank is then the launcher's to start again, with all others.
// Errors: UserError for a site that the config does not name, and for a launch of another number of ranks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/launcher.h"
#include "config/run_config.h"
#include "core/child_process.h"

namespace atl {

struct LaunchRequest {
    RunConfig config;
    std::filesystem::path run_directory;                // holds the resolved config.toml
    std::filesystem::path programs;                     // where atoll and atoll-worker lie
    std::optional<std::string> site;                    // this site alone; nothing = all sites of the config
    bool with_coordinator = false;                      // beside one site; always when all sites run here
    std::string resume = "auto";                        // auto, none or the path of a checkpoint
    std::optional<std::int64_t> stop_at;                // inner steps
    std::optional<std::filesystem::path> dump_batches;  // directory of SITE.bin
    std::vector<int> processors;                        // this process may use
    std::optional<LaunchedRank> launched;  // one rank of the site alone: the others are started elsewhere
};

struct LaunchPlan {
    struct IslandProcesses {
        std::string site;
        std::int64_t threads = 1;  // per rank
        int restarts = 0;
        std::vector<ChildOptions> ranks;  // without what changes from start to start
        std::int64_t first_rank = 0;      // of `ranks`
        std::int64_t all_ranks = 0;       // of the island, here and elsewhere
        bool meets_here = true;           // in a directory that each start makes anew
    };
    std::optional<ChildOptions> coordinator;
    std::vector<IslandProcesses> islands;
};

LaunchPlan plan_launch(const LaunchRequest& request);

// The rendezvous of an island's n-th start: files of an earlier one would be taken for live ranks.
std::filesystem::path rendezvous_directory(const std::filesystem::path& run_directory,
                                           const std::string& site, int start);

}  // namespace atl
