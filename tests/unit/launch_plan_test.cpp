// Which processes a run consists of, and on which processors they may run.
#include "cli/launch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.h"

namespace atl {
namespace {

LaunchRequest two_sites(std::int64_t ranks, std::vector<int> processors) {
    LaunchRequest request{.run_directory = "/run", .programs = "/bin", .processors = std::move(processors)};
    for (const char* name : {"east", "west"}) {
        SiteConfig site{.name = name};
        site.island.ranks = ranks;
        request.config.sites.push_back(site);
    }
    return request;
}

TEST(LaunchPlan, the_whole_run_is_a_coordinator_and_every_rank_of_every_site) {
    const auto plan = plan_launch(two_sites(2, {0, 1, 2, 3}));
    ASSERT_TRUE(plan.coordinator);
    ASSERT_EQ(plan.islands.size(), 2u);
    ASSERT_EQ(plan.islands[1].ranks.size(), 2u);
    EXPECT_EQ(plan.islands[1].ranks[1].environment.at("RANK"), "1");
    EXPECT_EQ(plan.islands[1].ranks[1].environment.at("WORLD_SIZE"), "2");
}

TEST(LaunchPlan, ranks_get_processors_of_their_own_only_where_there_are_enough) {
    const auto pinned = plan_launch(two_sites(1, {4, 7}));
    EXPECT_EQ(pinned.islands[0].ranks[0].processors, std::vector{4});
    EXPECT_EQ(pinned.islands[1].ranks[0].processors, std::vector{7});
    const auto crowded = plan_launch(two_sites(2, {0, 1}));
    EXPECT_EQ(crowded.islands[0].threads, 1);
    EXPECT_TRUE(crowded.islands[0].ranks[0].processors.empty());
}

TEST(LaunchPlan, one_site_alone_brings_a_coordinator_only_when_told_to) {
    auto request = two_sites(1, {0, 1});
    request.site = "west";
    EXPECT_FALSE(plan_launch(request).coordinator);
    EXPECT_EQ(plan_launch(request).islands.size(), 1u);
    request.with_coordinator = true;
    request.stop_at = 120;
    EXPECT_EQ(plan_launch(request).coordinator->command.back(), "120");
}

TEST(LaunchPlan, sites_of_one_machine_that_are_started_apart_share_its_processors) {
    auto request = two_sites(1, {4, 7});
    request.site = "west";
    EXPECT_EQ(plan_launch(request).islands[0].ranks[0].processors, std::vector{7});
    request.config.sites[0].address = "10.0.0.1:7071";
    EXPECT_EQ(plan_launch(request).islands[0].ranks[0].processors, (std::vector{4, 7}));
}

TEST(LaunchPlan, the_first_rank_of_every_site_dumps_batches_when_told_to) {
    auto request = two_sites(2, {0, 1, 2, 3});
    request.dump_batches = "/batches";
    for (const auto& island : plan_launch(request).islands) {
        const auto& first = island.ranks[0].command;
        const auto option = std::find(first.begin(), first.end(), "--dump-batches");
        ASSERT_LT(option + 1, first.end());
        EXPECT_EQ(option[1], "/batches");
        const auto& second = island.ranks[1].command;
        EXPECT_EQ(std::find(second.begin(), second.end(), "--dump-batches"), second.end());
    }
}

TEST(LaunchPlan, an_unknown_site_is_refused_with_the_known_ones) {
    auto request = two_sites(1, {0});
    request.site = "wset";
    try {
        plan_launch(request);
        FAIL();
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(), "--site wset: the config names no such site; it names east, west");
    }
}

std::optional<LaunchedRank> launched_with(const std::map<std::string, std::string>& variables) {
    return launched_rank(
        [&](const char* name) -> const char* {
            const auto found = variables.find(name);
            return found == variables.end() ? nullptr : found->second.c_str();
        },
        99);
}

TEST(Launcher, ranks_are_told_by_torchrun_mpirun_and_srun_and_by_nobody_else) {
    std::map<std::string, std::string> torchrun{{"RANK", "3"},
                                                {"WORLD_SIZE", "8"},
                                                {"LOCAL_RANK", "1"},
                                                {"LOCAL_WORLD_SIZE", "2"},
                                                {"MASTER_ADDR", "10.0.0.1"},
                                                {"MASTER_PORT", "29500"}};
    EXPECT_EQ(launched_with(torchrun), (LaunchedRank{3, 8, 1, 2, "", 29500}));
    torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";
    EXPECT_EQ(launched_with(torchrun), (LaunchedRank{3, 8, 1, 2, "", 29501}));
    torchrun["RANK"] = "1";
    torchrun["WORLD_SIZE"] = "2";
    torchrun["TORCHELASTIC_RUN_ID"] = "none";
    EXPECT_EQ(launched_with(torchrun), (LaunchedRank{1, 2, 1, 2, "launch-99-none", 0}));
    EXPECT_EQ(launched_with({{"OMPI_COMM_WORLD_RANK", "1"},
                             {"OMPI_COMM_WORLD_SIZE", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                             {"PMIX_NAMESPACE", "job.7@1"}}),
              (LaunchedRank{1, 2, 1, 2, "launch-99-job_7_1", 0}));
    EXPECT_EQ(launched_with({{"SLURM_PROCID", "0"},
                             {"SLURM_STEP_NUM_TASKS", "2"},
                             {"SLURM_LOCALID", "0"},
                             {"SLURM_STEP_NUM_NODES", "1"},
                             {"SLURM_JOB_ID", "12"},
                             {"SLURM_STEP_ID", "3"}}),
              (LaunchedRank{0, 2, 0, 2, "launch-99-12-3", 0}));
    EXPECT_EQ(launched_with({}), std::nullopt);
    // The batch script of a Slurm job is no step of it, and one process needs no others.
    EXPECT_EQ(launched_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), std::nullopt);
    EXPECT_EQ(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), std::nullopt);
    EXPECT_THROW(launched_with({{"OMPI_COMM_WORLD_RANK", "1"},
                                {"OMPI_COMM_WORLD_SIZE", "4"},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
                 UserError);
    EXPECT_THROW(launched_with({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), UserError);
    // Slurm does not say how many of the ranks are on one machine.
    const std::map<std::string, std::string> two_machines{{"SLURM_PROCID", "7"},  {"SLURM_STEP_NUM_TASKS", "8"},
                                                          {"SLURM_LOCALID", "3"}, {"SLURM_STEP_NUM_NODES", "2"},
                                                          {"MASTER_ADDR", "a"},   {"MASTER_PORT", "29500"}};
    EXPECT_EQ(launched_with(two_machines), (LaunchedRank{7, 8, 3, 4, "", 29500}));
}

TEST(Launcher, a_rank_that_cannot_be_is_refused) {
    EXPECT_THROW(launched_with({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), UserError);
    EXPECT_THROW(launched_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "2"}}),
                 UserError);
}

TEST(LaunchPlan, a_launched_rank_is_one_process_and_the_first_brings_the_coordinator_of_a_single_site) {
    auto request = two_sites(2, {4, 7});
    request.config.sites.pop_back();
    request.launched =
        LaunchedRank{.rank = 1, .ranks = 2, .local_rank = 1, .local_ranks = 2, .meeting = "job"};
    const auto second = plan_launch(request);
    EXPECT_FALSE(second.coordinator);
    ASSERT_EQ(second.islands.at(0).ranks.size(), 1u);
    EXPECT_EQ(second.islands[0].ranks[0].environment.at("RANK"), "1");
    EXPECT_EQ(second.islands[0].ranks[0].processors, std::vector{7});
    EXPECT_EQ(second.islands[0].ranks[0].command.back(), "/run/rendezvous/job");
    request.launched->rank = 0;
    EXPECT_TRUE(plan_launch(request).coordinator);
    request.launched->ranks = 4;
    EXPECT_THROW(plan_launch(request), UserError);
    request = two_sites(2, {4, 7});
    request.launched = LaunchedRank{.rank = 0, .ranks = 2};
    EXPECT_THROW(plan_launch(request), UserError) << "which of the two sites?";
    request.site = "west";
    EXPECT_FALSE(plan_launch(request).coordinator);
}

}  // namespace
}  // namespace atl
