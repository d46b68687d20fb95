// Sites on the simulated clock: closed forms where they exist, and laws where they don't.
#include <gtest/gtest.h>

#include "core/error.h"
#include "outer/outer.h"
#include "simulator/cluster.h"
#include "simulator/geo_run.h"

namespace atl {
namespace {

OuterLoop diloco(std::int32_t inner_steps, double exchange_seconds) {
    return {.schedule = {.inner_steps = inner_steps},
            .layers = 12,
            .step_seconds = {2},
            .exchange_seconds = exchange_seconds};
}

double utilization(const OuterLoop& loop) {
    return simulate(loop).compute_utilization.front();
}

TEST(OuterLoop, an_exchange_that_nothing_hides_costs_all_of_its_time) {
    EXPECT_NEAR(utilization(diloco(10, 5)), 20.0 / 25, 1e-12);
    EXPECT_NEAR(utilization(diloco(1, 5)), 2.0 / 7, 1e-12);
    auto with_latency = diloco(10, 5);
    with_latency.latency_seconds = 1;
    EXPECT_NEAR(utilization(with_latency), 20.0 / 26, 1e-12);
}

TEST(OuterLoop, a_fragment_hides_behind_as_many_steps_as_it_may_be_late) {
    auto loop = diloco(12, 18);
    loop.schedule.fragments = 3;
    loop.schedule.overlap_steps = 2;
    // Each of three fragments takes 6 s, of which two steps hide 4.
    EXPECT_NEAR(utilization(loop), 24.0 / (24 + 3 * 2), 1e-12);
    loop.schedule.overlap_steps = 3;
    EXPECT_NEAR(utilization(loop), 1, 1e-12);
}

TEST(OuterLoop, the_slowest_site_decides_and_the_others_wait) {
    auto loop = diloco(10, 5);
    loop.step_seconds = {2, 1, 4};
    const auto run = simulate(loop);
    EXPECT_NEAR(run.round_seconds, 45, 1e-12);
    EXPECT_NEAR(run.compute_utilization[0], 20.0 / 45, 1e-12);
    EXPECT_NEAR(run.compute_utilization[1], 10.0 / 45, 1e-12);
    EXPECT_NEAR(run.compute_utilization[2], 40.0 / 45, 1e-12);
}

TEST(OuterLoop, layers_that_leave_and_arrive_one_by_one_never_take_longer) {
    for (const double exchange_seconds : {0.1, 1.0, 3.0, 30.0})
        for (const std::int32_t fragments : {1, 3, 4}) {
            auto loop = diloco(8, exchange_seconds);
            loop.schedule.fragments = fragments;
            const double whole = utilization(loop);
            loop.by_layer = true;
            EXPECT_GE(utilization(loop) + 1e-12, whole) << exchange_seconds << " s, " << fragments;
        }
}

TEST(OuterLoop, the_longest_exchange_for_a_utilization_just_reaches_it) {
    auto loop = diloco(10, 0);
    EXPECT_NEAR(longest_exchange_seconds(loop, 0.8), 5, 0.05);
    loop.by_layer = true;
    const double longest = longest_exchange_seconds(loop, 0.95);
    loop.exchange_seconds = longest;
    EXPECT_GE(utilization(loop), 0.95);
    loop.exchange_seconds = 1.02 * longest;
    EXPECT_LT(utilization(loop), 0.95);
}

GeoRun run_of(std::size_t sites, const std::string& codec) {
    return {.parameters = 1e9,
            .layers = 24,
            .step_seconds = std::vector<double>(sites, 4.0),
            .tokens_per_step = 1e6,
            .link_bits_per_second = 1e9,
            .schedule = {.inner_steps = 100},
            .codec = codec,
            .token_budget = 20e9};
}

TEST(GeoRun, traffic_is_that_of_direct_owned_and_gathered_exchange) {
    EXPECT_DOUBLE_EQ(predict(run_of(2, "identity")).payload_bytes_per_round, 4e9);
    EXPECT_DOUBLE_EQ(predict(run_of(4, "identity")).payload_bytes_per_round, 6e9);  // 2 (M - 1) / M
    const double one = predict(run_of(2, "top_k")).payload_bytes_per_round;
    EXPECT_DOUBLE_EQ(predict(run_of(5, "top_k")).payload_bytes_per_round, 4 * one);
    EXPECT_DOUBLE_EQ(predict(run_of(1, "identity")).payload_bytes_per_round, 0);
}

TEST(GeoRun, days_are_tokens_over_what_all_sites_do) {
    const auto prediction = predict(run_of(2, "identity"));
    EXPECT_NEAR(prediction.compute_utilization, 400.0 / 432, 1e-9);
    EXPECT_NEAR(prediction.tokens_per_second, 2e8 / 432, 1e-3);
    EXPECT_NEAR(prediction.days, 20e9 / (2e8 / 432) / 86400, 1e-9);
}

TEST(GeoRun, every_choice_offered_for_rounds_of_any_length_can_be_simulated) {
    for (int inner_steps = 1; inner_steps <= 40; ++inner_steps) {
        auto run = run_of(2, "int8");
        run.schedule.inner_steps = inner_steps;
        for (const auto& choice : outer_choices(run)) {
            auto chosen = run;
            chosen.schedule = choice.schedule;
            chosen.codec = choice.codec;
            EXPECT_GT(predict(chosen).compute_utilization, 0) << choice.name << " " << inner_steps;
        }
    }
}

TEST(GeoRun, a_schedule_or_name_that_cannot_be_is_the_users_mistake) {
    auto run = run_of(2, "itn8");
    EXPECT_THROW(predict(run), UserError);
    run = run_of(2, "int8");
    run.schedule.fragments = 25;
    EXPECT_THROW(predict(run), UserError);
    run.schedule = {.inner_steps = 10, .fragments = 2, .overlap_steps = 5};
    EXPECT_THROW(predict(run), UserError);
    try {
        cluster_from_name("a8000");
        FAIL() << "no such cluster";
    } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("nearest: a800"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace atl
