// The tuner: its limits, its closed form, what it says, and published tables it must reproduce.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/random.h"
#include "outer/codec_choices.h"
#include "outer/tuner.h"

namespace atl {
namespace {

std::vector<std::int64_t> every_number_up_to(std::int64_t most) {
    std::vector<std::int64_t> all;
    for (std::int64_t steps = 1; steps <= most; ++steps) all.push_back(steps);
    return all;
}

// 25 M parameters in int8, steps of 0.1 s.
TunerInput example(double bits_per_second) {
    TunerInput input;
    input.step_seconds = 0.1;
    input.bits_per_second = bits_per_second;
    input.inner_steps = inner_step_candidates(1'000'000'000);
    input.codecs = {{"int8", 25e6, 0}};
    return input;
}

TEST(Tuner, a_link_that_costs_nothing_asks_for_the_most_frequent_exchange) {
    TunerInput input = example(1e15);
    EXPECT_EQ(tune(input).best.inner_steps, input.inner_steps.front());
    input.bits_per_second = 0;
    EXPECT_EQ(tune(input).best.inner_steps, input.inner_steps.front());
    EXPECT_DOUBLE_EQ(tune(input).best.log_time, 0);
}

TEST(Tuner, twice_the_bytes_ask_for_twice_the_steps) {
    TunerInput input = example(100e6);
    const std::int64_t once = tune(input).best.inner_steps;
    input.codecs.front().bytes *= 2;
    EXPECT_EQ(tune(input).best.inner_steps, 2 * once);
}

TEST(Tuner, trying_every_number_of_steps_finds_the_closed_form) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const RandomStream random(seed, std::uint64_t{1});
        TunerInput input;
        input.step_seconds = 0.05 + random.uniform(0);
        input.own_seconds = 0.2 + 3 * random.uniform(1);
        input.inner_steps = every_number_up_to(2000);
        input.codecs = {{"identity", 0, 0}};
        input.loss.per_log_inner_steps = 0.012 + 0.02 * random.uniform(2);
        const double expected =
            closed_form_inner_steps(input.own_seconds, input.step_seconds, input.loss.kappa());
        EXPECT_NEAR(static_cast<double>(tune(input).best.inner_steps), std::clamp(expected, 1.0, 2000.0), 1.0)
            << "seed " << seed;
    }
}

TEST(Tuner, recovers_the_loss_model_from_tables_of_losses) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const RandomStream random(seed, std::uint64_t{2});
        const double a = 0.01 + 0.03 * random.uniform(0);
        const double s = 0.07 + 0.05 * random.uniform(1);
        std::vector<std::pair<double, double>> by_steps;
        std::vector<std::pair<double, double>> by_tokens;
        for (std::uint64_t i = 0; i < 12; ++i) {
            const double steps = 10 * std::pow(1.5, i);
            const double tokens = 1e8 * std::pow(2, i);
            by_steps.emplace_back(steps, 2.5 + a * std::log(steps) + 2e-4 * (random.uniform(10 + i) - 0.5));
            by_tokens.emplace_back(tokens, 5 - s * std::log(tokens) + 2e-4 * (random.uniform(30 + i) - 0.5));
        }
        const LossModel fitted = fit_loss_model(by_steps, by_tokens);
        EXPECT_NEAR(fitted.per_log_inner_steps, a, 0.05 * a) << "seed " << seed;
        EXPECT_NEAR(fitted.per_log_tokens, s, 0.05 * s) << "seed " << seed;
    }
}

// Streaming DiLoCo's table for plain DiLoCo with H = 100: Gbit/s that reach a utilization, 16 bits, two sites.
TEST(Tuner, predicts_the_utilization_of_published_tables_within_their_grid_of_rates) {
    struct Row {
        double parameters;
        double step_seconds;
        double gbit_per_second[4];  // for 50, 80, 90 and 95 %
    };
    const Row rows[] = {{1e9, 0.1, {1.4, 6.2, 13.3, 23.3}},
                        {10e9, 0.8, {1.7, 7.5, 16, 33.9}},
                        {100e9, 4.9, {3, 11, 23.3, 49.4}}};
    const double utilization[] = {0.50, 0.80, 0.90, 0.95};
    for (const Row& row : rows) {
        for (int i = 0; i < 4; ++i) {
            TunerInput input = example(row.gbit_per_second[i] * 1e9);
            input.step_seconds = row.step_seconds;
            const CodecChoice codec{"bf16", 2 * row.parameters, 0};
            const double predicted = predict(input, 100, codec, {}).compute_utilization;
            EXPECT_NEAR(predicted, utilization[i], 0.05) << row.parameters << " parameters, column " << i;
        }
    }
}

TEST(Tuner, half_the_bits_win_while_the_link_binds_and_are_not_taken_when_it_is_free) {
    TunerInput slow = example(10e6);
    slow.codecs = {{"int8", 25e6, 0}, {"int4", 12.5e6, 0.005}};
    EXPECT_EQ(tune(slow).best.codec.name, "int4");
    TunerInput fast = slow;
    fast.bits_per_second = 100e9;
    EXPECT_EQ(tune(fast).best.codec.name, "int8");
}

TEST(Tuner, overlap_hides_what_fits_into_it_and_no_more) {
    TunerInput input = example(100e6);  // 2 s a round, in steps of 0.1 s
    input.streams = {{1, 0}, {4, 6}};
    const TunerPoint plain = predict(input, 56, input.codecs[0], {1, 0});
    const TunerPoint streamed = predict(input, 56, input.codecs[0], {4, 6});
    EXPECT_NEAR(plain.stall_seconds, 2.0, 1e-9);
    EXPECT_EQ(streamed.stall_seconds, 0) << "0.5 s a fragment, 0.6 s to hide it in";
    EXPECT_NEAR(predict(input, 56, input.codecs[0], {4, 2}).stall_seconds, 4 * 0.3, 1e-9);
    EXPECT_GT(predict(input, 10, input.codecs[0], {1, 9}).stall_seconds, 1 - 1e-9)
        << "10 steps last 1 s, the link needs 2 s for them";
    EXPECT_EQ(tune(input).best.stream, (StreamChoice{4, 6}));
}

// A round of 20 steps in 4 fragments has room for 4 steps of overlap, whatever τ asks for.
TEST(Tuner, a_round_too_short_for_its_overlap_hides_behind_what_fits) {
    const TunerInput input = example(100e6);  // 2 s a round, in steps of 0.1 s
    const auto stall = [&](const StreamChoice& stream) {
        return predict(input, 20, input.codecs[0], stream).stall_seconds;
    };
    EXPECT_NEAR(stall({4, 9}), 4 * (0.5 - 0.4), 1e-9);
    EXPECT_EQ(stall({4, 9}), stall({4, 4}));
}

TEST(Tuner, an_exchange_that_is_a_round_late_hides_behind_the_whole_round) {
    TunerInput input = example(100e6);
    const StreamChoice late{.a_round_late = true};
    EXPECT_EQ(predict(input, 20, input.codecs[0], late).stall_seconds, 0) << "2 s, and 2 s to hide it in";
    EXPECT_NEAR(predict(input, 10, input.codecs[0], late).stall_seconds, 1, 1e-9);
    EXPECT_TRUE(fits(late, 1));
}

TEST(Tuner, a_short_run_exchanges_more_often_than_a_long_one) {
    TunerInput input = example(100e6);
    const std::int64_t endless = tune(input).best.inner_steps;
    input.loss.run_steps = 2000;
    input.inner_steps = inner_step_candidates(2000);
    EXPECT_LT(tune(input).best.inner_steps, endless);
    EXPECT_LE(input.inner_steps.back(), 200);
}

TEST(Tuner, keeps_what_it_has_for_less_than_half_a_percent) {
    const TunerDecision decision = tune(example(100e6));
    EXPECT_FALSE(is_worth_changing(decision, decision.best.inner_steps));
    for (const TunerPoint& point : decision.curve) {
        EXPECT_EQ(is_worth_changing(decision, point.inner_steps),
                  point.log_time - decision.best.log_time > 0.005)
            << point.inner_steps;
    }
    EXPECT_TRUE(is_worth_changing(decision, 37)) << "no candidate";
}

TEST(Tuner, says_why_in_one_paragraph) {
    const TunerDecision decision = tune(example(100e6));
    EXPECT_EQ(decision.reason.find('\n'), std::string::npos);
    const std::string head = "H = " + std::to_string(decision.best.inner_steps) + " with int8: ";
    EXPECT_TRUE(decision.reason.starts_with(head)) << decision.reason;
    EXPECT_NE(decision.reason.find("More often"), std::string::npos) << decision.reason;
    EXPECT_NE(decision.reason.find("Less often"), std::string::npos) << decision.reason;
}

TEST(Tuner, candidates_grow_by_the_root_of_two_and_leave_ten_rounds) {
    const auto all = inner_step_candidates(1'000'000);
    for (std::size_t i = 1; i < all.size(); ++i)
        EXPECT_NEAR(static_cast<double>(all[i]) / static_cast<double>(all[i - 1]), std::sqrt(2), 0.03);
    EXPECT_EQ(inner_step_candidates(5), std::vector<std::int64_t>{10});
    EXPECT_EQ(inner_step_candidates(300).back(), 28);
}

TEST(CodecChoices, send_what_two_sites_owners_and_gatherers_send) {
    EXPECT_EQ(round_bytes("identity", 1e6, 1), 0);
    EXPECT_EQ(round_bytes("identity", 1e6, 2), 4e6);
    EXPECT_NEAR(round_bytes("identity", 9e5, 3), 2.0 / 3 * 9e5 * 8, 1)
        << "two thirds out, a third's mean to two";
    EXPECT_NEAR(round_bytes("top_k_64", 4096 * 100, 4), 3 * round_bytes("top_k_64", 4096 * 100, 2), 1);
    EXPECT_LT(round_bytes("int4", 1e6, 2), 0.6 * round_bytes("int8", 1e6, 2));
    for (const std::int64_t sites : {2, 3, 8})
        EXPECT_NEAR(elements_of(round_bytes("identity", 1e6, sites), sites, "identity"), 1e6, 10) << sites;
}

}  // namespace
}  // namespace atl
