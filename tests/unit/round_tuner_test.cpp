// From what rounds cost to H: which figures count, and how soon a changed link is followed.
#include <gtest/gtest.h>

#include "coordinator/round_tuner.h"
#include "coordinator/run_options.h"

namespace atl {
namespace {

// Two sites; the second is slower in its steps and so waits less.
class Costs {
  public:
    void add(std::int64_t round, std::int64_t inner_steps, double exchange_seconds) {
        add_site(0, round, inner_steps, 0.1, exchange_seconds + 0.02 * static_cast<double>(inner_steps));
        add_site(1, round, inner_steps, 0.12, exchange_seconds);
    }
    void add_site(int site, std::int64_t round, std::int64_t inner_steps, double step_seconds,
                  double stall_seconds) {
        RoundCost cost{.round = Round(round), .inner_steps = inner_steps, .peers = {}};
        cost.step_seconds = step_seconds * static_cast<double>(inner_steps);
        cost.round_seconds = cost.step_seconds + stall_seconds;
        cost.exchange_seconds = stall_seconds;
        cost.raw_bytes_sent = 4000;
        cost.peers = {{SiteId(1 - site), 1000, 1100, 1050, 1150}};
        all[SiteId(site)].push_back(cost);
    }
    RoundCosts all;
};

RunNumbers automatic(std::int64_t inner_steps) {
    RunNumbers numbers;
    numbers.automatic_inner_steps = true;
    numbers.inner_steps = inner_steps;
    numbers.total_steps = 1'000'000'000;
    return numbers;
}

TEST(RoundTuner, takes_the_slowest_steps_and_the_shortest_wait) {
    Costs costs;
    costs.add(0, 10, 0.5);
    const auto measured = measured_rounds(costs.all);
    ASSERT_TRUE(measured);
    EXPECT_EQ(measured->sites, 2);
    EXPECT_NEAR(measured->step_seconds, 0.12, 1e-12);
    EXPECT_NEAR(measured->stall_seconds, 0.5, 1e-12);
    EXPECT_EQ(measured->payload_bytes, 1100);
    EXPECT_NEAR(measured->compute_utilization, 1 / 1.7, 1e-9) << "of the site that waits most";
}

TEST(RoundTuner, waits_for_every_site_before_a_round_counts) {
    Costs costs;
    costs.add(0, 10, 0.5);
    costs.add_site(0, 1, 10, 0.1, 7);
    EXPECT_NEAR(measured_rounds(costs.all)->stall_seconds, 0.5, 1e-12);
    EXPECT_FALSE(measured_rounds({}));
}

TEST(RoundTuner, goes_on_with_the_sites_that_are_left) {
    Costs costs;
    for (int round = 0; round < 3; ++round) costs.add(round, 10, 0.5);
    for (int round = 3; round < 6; ++round) costs.add_site(1, round, 10, 0.12, 0.001);
    EXPECT_EQ(measured_rounds(costs.all)->sites, 1);
    EXPECT_NEAR(measured_rounds(costs.all)->stall_seconds, 0.001, 1e-12);
}

TEST(RoundTuner, one_slow_round_moves_nothing_and_a_slower_link_is_followed_after_two) {
    Costs costs;
    costs.add(0, 10, 0.5);
    const auto first = tune_inner_steps(automatic(10), 1, costs.all);
    ASSERT_TRUE(first);
    const std::int64_t chosen = first->inner_steps;
    EXPECT_NE(first->reason.find("H = "), std::string::npos);
    costs.add(1, chosen, 0.5);
    costs.add(2, chosen, 5.0);
    EXPECT_FALSE(tune_inner_steps(automatic(chosen), 1, costs.all));
    costs.add(3, chosen, 5.0);
    const auto slower = tune_inner_steps(automatic(chosen), 1, costs.all);
    ASSERT_TRUE(slower);
    EXPECT_NEAR(static_cast<double>(slower->inner_steps) / static_cast<double>(chosen), 10, 2);
}

TEST(RoundTuner, what_is_distance_is_not_taken_for_a_slow_link) {
    Costs costs;
    costs.add(0, 10, 0.5);
    for (auto& [site, history] : costs.all) history.front().peers.front().round_trip_seconds = 0.1;
    const TunerInput input = tuner_input(*measured_rounds(costs.all), automatic(10), 1);
    EXPECT_NEAR(input.round_trip_seconds, 0.1, 1e-12);
    EXPECT_NEAR(input.bits_per_second, 8 * 1100 / 0.4, 1e-6);
    EXPECT_NEAR(predict(input, 10, input.codecs.front(), {}).stall_seconds, 0.5, 1e-9) << "as measured";
}

TEST(RoundTuner, a_fixed_number_of_steps_stays) {
    Costs costs;
    costs.add(0, 10, 5);
    RunNumbers numbers = automatic(10);
    numbers.automatic_inner_steps = false;
    EXPECT_FALSE(tune_inner_steps(numbers, 1, costs.all));
}

TEST(RoundTuner, a_run_too_short_for_its_fragments_and_overlap_keeps_the_rounds_it_begins_with) {
    RunConfig config;
    config.train.steps = 100;
    config.outer.inner_steps = 0;
    config.outer.fragments = 3;
    config.outer.overlap_steps = 5;
    config.outer.lr = 0.6;
    config.sites.resize(2);
    const RunNumbers numbers = coordinator_options(config, std::nullopt).numbers;
    EXPECT_EQ(numbers.inner_steps, 18) << "6 steps for each fragment";
    Costs costs;
    costs.add(0, numbers.inner_steps, 5);
    EXPECT_FALSE(tune_inner_steps(numbers, 3, costs.all));
}

TEST(RoundTuner, sites_alone_exchange_as_often_as_can_be) {
    Costs costs;
    costs.add_site(0, 0, 40, 0.1, 0);
    const auto tuned = tune_inner_steps(automatic(40), 1, costs.all);
    ASSERT_TRUE(tuned);
    EXPECT_EQ(tuned->inner_steps, 10);
}

}  // namespace
}  // namespace atl
