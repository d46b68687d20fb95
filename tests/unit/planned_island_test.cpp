// Islands whose strands run by plans: every plan gives the bits of the serial step, ranks agree on one or run serially
// together, and the log says why.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "island/island.h"
#include "island/strand_planning.h"
#include "support/strand_island.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

using test::different_plans;
using test::machines;
using test::slow_link;
using test::strands;
using test::train;
using testing::HasSubstr;

TEST(PlannedIsland, every_plan_trains_with_the_bits_of_the_serial_step) {
    for (IslandOptions options : {strands({.tp = 2}), strands({.tp = 2}, 3), strands({.tp = 2, .dp = 2}),
                                  strands({.pp = 2}, 4), strands({.tp = 2, .pp = 2})}) {
        const ParallelShape& p = options.parallel;
        SCOPED_TRACE(
            fmt::format("tp {} pp {} dp {} memory {}", p.tp, p.pp, p.dp, options.memory_micro_batches));
        options.plan = std::make_shared<const StrandPlan>(serial_plan("the reference"));
        const auto serial = train(options);
        options.plan.reset();
        EXPECT_EQ(train(options), serial) << "by turns";
        std::set<std::string> tried;
        for (const MachineRates& rates : machines()) {
            StrandPlan plan = plan_of(options, costs_of(rates, step_fingerprint(options)));
            plan.interleaves = true;  // worth it or not
            if (plan.pairs.empty() || !tried.insert(plan.hash()).second) continue;
            options.plan = std::make_shared<const StrandPlan>(plan);
            EXPECT_EQ(train(options), serial) << plan.hash();
        }
        EXPECT_GE(tried.size(), p.tp > 1 ? 2U : 1U);
    }
}

// What all ranks of an island agree on when each has its own options.
std::vector<StrandPlan> agree(const std::vector<IslandOptions>& options, const StrandPlan& proposal) {
    const test::LocalIsland local(options.front());
    std::vector<StrandPlan> plans(options.size());
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        const auto place = static_cast<std::size_t>(rank);
        IslandOptions mine = options[place];
        agree_on_plan(mine, local.links(rank), rank == 0 ? proposal : StrandPlan{},
                      Log("test", LogLevel::error));
        plans[place] = *mine.plan;
    });
    return plans;
}

TEST(PlannedIsland, ranks_agree_on_the_gateways_plan) {
    const auto options = strands({.tp = 2});
    const auto proposal = plan_of(options, costs_of(slow_link(), step_fingerprint(options)));
    ASSERT_TRUE(proposal.interleaves) << proposal.reason;
    for (const StrandPlan& plan : agree({options, options}, proposal)) EXPECT_EQ(plan, proposal);
}

TEST(PlannedIsland, one_rank_for_which_the_plan_is_stale_makes_all_run_serially) {
    const auto options = strands({.tp = 2});
    auto other = options;
    other.threads = 7;
    const auto proposal = plan_of(options, costs_of(slow_link(), step_fingerprint(options)));
    for (const StrandPlan& plan : agree({options, other}, proposal)) {
        EXPECT_FALSE(plan.interleaves);
        EXPECT_THAT(plan.reason, HasSubstr("rank 1 can't run the plan: threads is 7, the profile's 1"));
    }
}

TEST(PlannedIsland, one_rank_with_other_ops_makes_all_run_serially) {
    const auto options = strands({.tp = 2});
    auto proposal = plan_of(options, costs_of(slow_link(), step_fingerprint(options)));
    proposal.pairs.front().first_ops += 1;
    proposal.pairs.front().order.push_back(proposal.pairs.front().first_ops +
                                           proposal.pairs.front().second_ops - 1);
    for (const StrandPlan& plan : agree({options, options}, proposal)) {
        EXPECT_FALSE(plan.interleaves);
        EXPECT_THAT(plan.reason, HasSubstr("it is for another model"));
    }
}

TEST(PlannedIsland, a_file_that_is_no_plan_is_the_users_mistake) {
    const auto files = make_system_file_system();
    const test::TemporaryDirectory directory;
    auto options = strands({.tp = 2});
    const auto mistake = [&](const std::string& name) -> std::string {
        options.plan_file = directory.path() / name;
        try {
            proposed_plan(options, *files);
        } catch (const UserError& error) {
            return error.what();
        }
        return "none";
    };
    EXPECT_THAT(mistake("none.json"), HasSubstr("none.json"));
    files->write_text_atomically(directory.path() / "half.json", "{");
    EXPECT_THAT(mistake("half.json"), HasSubstr("half.json: not a JSON object"));
    auto plan = plan_of(options, costs_of(slow_link(), step_fingerprint(options)));
    std::ranges::reverse(plan.pairs.front().order);
    files->write_text_atomically(directory.path() / "reversed.json", to_json(plan));
    EXPECT_THAT(mistake("reversed.json"), HasSubstr("which no op before it writes"));
}

TEST(PlannedIsland, a_file_for_another_step_is_stale_and_says_how) {
    const auto files = make_system_file_system();
    const test::TemporaryDirectory directory;
    auto options = strands({.tp = 2});
    options.profile_file = directory.path() / "profile.json";
    OpProfile profile{.fingerprint = step_fingerprint(options)};
    profile.fingerprint.tp = 8;
    files->write_text_atomically(options.profile_file, to_json(profile));
    const ProposedPlan proposed = proposed_plan(options, *files);
    EXPECT_FALSE(proposed.plan.interleaves);
    EXPECT_THAT(proposed.stale, HasSubstr("profile.json is stale: tp is 2, the profile's 8"));
    profile.fingerprint.tp = 2;
    files->write_text_atomically(options.profile_file, to_json(profile));
    EXPECT_THAT(proposed_plan(options, *files).stale, HasSubstr("the profile has no time of"));
    auto plan = plan_of(options, costs_of(slow_link(), step_fingerprint(options)));
    plan.fingerprint.threads = 7;
    options.plan_file = directory.path() / "plan.json";
    files->write_text_atomically(options.plan_file, to_json(plan));
    EXPECT_THAT(proposed_plan(options, *files).stale,
                HasSubstr("plan.json is stale: threads is 1, the profile's 7"));
}

TEST(PlannedIsland, a_plan_file_serves_as_it_was_written) {
    const auto files = make_system_file_system();
    const test::TemporaryDirectory directory;
    auto options = strands({.tp = 2});
    const auto plan = plan_of(options, costs_of(slow_link(), step_fingerprint(options)));
    options.plan_file = directory.path() / "plan.json";
    files->write_text_atomically(options.plan_file, to_json(plan));
    EXPECT_EQ(proposed_plan(options, *files).plan, plan);
}

TEST(PlannedIsland, one_micro_batch_is_run_as_two_halves_where_that_pays) {
    auto options = strands({.tp = 2});
    options.model.context = options.batch.context = 96;
    options.batch.sequences_per_step = options.batch.micro_batch = 4;
    const auto costs = costs_of(slow_link(), step_fingerprint(options));
    const auto plan = plan_of(options, costs);
    ASSERT_TRUE(plan.halves_micro_batches) << plan.reason;
    EXPECT_THAT(plan.reason, HasSubstr("two halves of the one micro-batch are predicted to save"));
    const test::LocalIsland local(options);
    std::vector<double> losses(2);
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        IslandOptions mine = options;
        agree_on_plan(mine, local.links(rank), rank == 0 ? plan : StrandPlan{}, Log("test", LogLevel::error));
        Island island(mine, local.links(rank));
        island.initialise(3);
        EXPECT_EQ(island.local_micro_batches(), 2);
        losses[static_cast<std::size_t>(rank)] = test::random_step(island, 0).mean_loss();
    });
    auto whole = options;
    whole.plan = std::make_shared<const StrandPlan>(serial_plan("the reference"));
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        Island island(whole, local.links(rank));
        island.initialise(3);
        EXPECT_NEAR(test::random_step(island, 0).mean_loss(), losses[static_cast<std::size_t>(rank)], 1e-5);
    });
    MachineRates latency = slow_link();
    latency.link_intra.latency_seconds = 1;
    const auto slow = plan_of(options, costs_of(latency, step_fingerprint(options)));
    EXPECT_FALSE(slow.interleaves);
    EXPECT_THAT(slow.reason, HasSubstr("two halves of it save"));
}

TEST(PlannedIsland, goes_on_with_the_same_bits_when_its_plan_changes_between_steps) {
    for (IslandOptions options : {strands({.tp = 2}), strands({.tp = 2, .pp = 2})}) {
        const auto plans = different_plans(options);
        ASSERT_EQ(plans.size(), 3U);
        options.plan = std::make_shared<const StrandPlan>(plans.back());
        const auto serial = train(options);
        const test::LocalIsland local(options);
        std::vector<std::vector<float>> state;
        test::run_ranks(local.size(), [&](std::int32_t rank) {
            Island island(options, local.links(rank));
            island.initialise(3);
            for (int step = 0; step < 3; ++step) {
                const bool holds_norm = options.parallel.pp == 1;
                const auto address_of_norm = [&] {
                    return holds_norm ? island.tensor(TensorKind::parameter, "model.norm.weight").data
                                      : nullptr;
                };
                const void* before = address_of_norm();
                island.set_plan(std::make_shared<const StrandPlan>(plans[static_cast<std::size_t>(step)]));
                EXPECT_EQ(address_of_norm(), before);
                EXPECT_TRUE(test::random_step(island, step).applied);
            }
            EXPECT_GE(island.predicted_bytes(), island.measured_bytes());
            auto mine = test::state_of(island);
            if (rank == 0) state = std::move(mine);
        });
        EXPECT_EQ(state, serial);
    }
}

TEST(PlannedIsland, too_few_micro_batches_run_serially) {
    auto options = strands({.tp = 2});
    options.batch.sequences_per_step = 1;
    const auto files = make_system_file_system();
    EXPECT_THAT(proposed_plan(options, *files).plan.reason,
                HasSubstr("1 micro-batch(es), interleaving needs 2"));
}

}  // namespace
}  // namespace atl
