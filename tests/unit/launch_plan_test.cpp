// Which processes a run consists of, and on which processors they may run.
#include "cli/launch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace atl
