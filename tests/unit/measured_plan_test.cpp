// Plans of strands that are measured: profiles that hold what plans need, the fastest of a few plans tried for real, and a
// run's planner that keeps its plan and makes another when steps drift.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "island/op_profiler.h"
#include "island/pair_profiler.h"
#include "island/plan_replay.h"
#include "island/strand_planner.h"
#include "support/strand_island.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

using test::different_plans;
using test::strands;
using test::train;
using testing::HasSubstr;

TEST(PlanReplay, takes_the_fastest_plan_or_the_serial_step_where_none_gains) {
    const auto plans = different_plans(strands({.tp = 2}));
    const auto fastest = [&](double serial, double first, double second) {
        return fastest_plan({{plans[2], serial}, {plans[0], first}, {plans[1], second}});
    };
    EXPECT_EQ(fastest(0.010, 0.008, 0.007).hash(), plans[1].hash());
    EXPECT_EQ(fastest(0.010, 0.007, 0.008).hash(), plans[0].hash());
    const auto serial = fastest(0.0031, 0.0038, 0.0039);
    EXPECT_FALSE(serial.interleaves);
    EXPECT_EQ(serial.reason, "the fastest of 2 plans took 3.8 ms a step, a serial step 3.1 ms");
    EXPECT_FALSE(fastest(0.0100, 0.00999, 0.011).interleaves) << "a gain within the noise";
}

// What each rank's planner does at the start, after two changes of mind and in between, and the state it ends with.
TEST(StrandPlanner, measures_at_the_start_keeps_its_plan_and_plans_again_with_the_same_bits) {
    auto options = strands({.tp = 2});
    options.measures_profile = true;
    const auto serial = [&] {
        auto reference = options;
        reference.plan = std::make_shared<const StrandPlan>(serial_plan("the reference"));
        return train(reference);
    }();
    const auto files = make_system_file_system();
    const test::TemporaryDirectory directory;
    const StrandPlanner::Kept kept{directory.path() / "plan.json", directory.path() / "profile.json"};
    const Log log("test", LogLevel::error);
    const test::LocalIsland local(options);
    std::vector<std::vector<float>> state;
    std::vector<std::string> hashes(2);
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        const IslandLinks links = local.links(rank);
        StrandPlanner planner(links, *files, kept, log);
        IslandOptions mine = options;
        planner.plan_at_start(mine);
        ASSERT_NE(mine.plan, nullptr);
        EXPECT_TRUE(difference(step_fingerprint(options), mine.plan->fingerprint).empty());
        Island island(mine, links);
        island.initialise(3);
        for (int step = 0; step < 3; ++step) {
            EXPECT_TRUE(test::random_step(island, step).applied);
            if (step < 2) planner.plan_again(island);
        }
        hashes[static_cast<std::size_t>(rank)] = island.options().plan->hash();
        auto whole = test::state_of(island);
        if (rank == 0) state = std::move(whole);
    });
    EXPECT_EQ(state, serial);
    EXPECT_EQ(hashes[0], hashes[1]);
    const std::string plan = files->read_text(kept.plan);
    EXPECT_EQ(strand_plan_from_json(plan, "kept").hash(), hashes[0]);
    EXPECT_EQ(op_profile_from_json(files->read_text(kept.profile), "kept").fingerprint.tp, 2);
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        StrandPlanner planner(local.links(rank), *files, kept, log);
        IslandOptions mine = options;
        planner.plan_at_start(mine);
        EXPECT_EQ(mine.plan->hash(), hashes[0]) << "a run that goes on takes the plan that was kept";
    });
    EXPECT_EQ(files->read_text(kept.plan), plan);
}

TEST(StrandPlanner, asks_for_another_plan_when_steps_drift_from_those_before) {
    auto options = strands({.tp = 2});
    options.profile_file.clear();  // a cost model
    const auto files = make_system_file_system();
    const test::TemporaryDirectory directory;
    const test::LocalIsland local(options);
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        StrandPlanner planner(local.links(rank), *files,
                              {directory.path() / "plan.json", directory.path() / "profile.json"},
                              Log("test", LogLevel::error));
        EXPECT_EQ(planner.add_step(9.0), "") << "before there is a plan";
        IslandOptions mine = options;
        planner.plan_at_start(mine);
        for (std::size_t step = 0; step < 3 * kDriftSteps; ++step) ASSERT_EQ(planner.add_step(0.1), "");
        for (std::size_t step = 1; step < kDriftSteps; ++step) ASSERT_EQ(planner.add_step(0.2), "");
        EXPECT_EQ(planner.add_step(0.2), "50 steps took 0.2 s each, 0.1 s were expected");
    });
}

TEST(StrandPlanner, measures_where_the_profile_that_is_named_is_stale) {
    auto options = strands({.tp = 2});
    const auto files = make_system_file_system();
    const test::TemporaryDirectory directory;
    options.measures_profile = false;
    options.profile_file = directory.path() / "named.json";
    OpProfile profile{.fingerprint = step_fingerprint(options)};
    profile.fingerprint.threads = 7;
    files->write_text_atomically(options.profile_file, to_json(profile));
    const StrandPlanner::Kept kept{directory.path() / "plan.json", directory.path() / "profile.json"};
    const test::LocalIsland local(options);
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        StrandPlanner planner(local.links(rank), *files, kept, Log("test", LogLevel::error));
        IslandOptions mine = options;
        planner.plan_at_start(mine);
        EXPECT_THAT(mine.plan->costs, HasSubstr("profile of 2 rank(s)"));
    });
    EXPECT_EQ(op_profile_from_json(files->read_text(kept.profile), "kept").fingerprint.threads, 1);
}

TEST(OpProfiler, measures_halves_of_a_lone_micro_batch_so_that_they_can_be_planned) {
    auto options = strands({.tp = 2});
    options.batch.sequences_per_step = options.batch.micro_batch = 4;
    const auto files = make_system_file_system();
    const test::LocalIsland local(options);
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        const auto profile = measure_op_profile({.island = options}, local.links(rank));
        const auto plan = plan_of(options, costs_of(profile));  // which throws if an op's time is missing
        EXPECT_THAT(plan.reason, HasSubstr("two halves of")) << rank;
    });
}

TEST(OpProfiler, measures_links_of_both_classes_together) {
    const auto options = strands({.tp = 2, .dp = 2});
    const test::LocalIsland local(options);
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        const auto pairs = measure_pairs(options, local.links(rank));
        const auto both = std::ranges::find_if(pairs, [](const PairSlowdown& pair) {
            return pair.first.resource == Resource::link_intra &&
                   pair.second.resource == Resource::link_inter;
        });
        ASSERT_NE(both, pairs.end());
        EXPECT_GE(both->first_slowdown, 1);
        EXPECT_GE(both->second_slowdown, 1);
    });
}

}  // namespace
}  // namespace atl
