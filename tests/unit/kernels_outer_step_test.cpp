// The outer loop's arithmetic: hand-worked steps, the same bits under every instruction set.
#include "core/check.h"
#include "kernels/outer_step.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::InstructionSet;
using kernels::OuterSgd;
using test::normal_values;

TEST(OuterStep, nesterov_heavy_ball_and_plain_steps_match_hand_worked_numbers) {
    for (const auto set : test::supported_sets()) {
        std::vector<float> theta = {10};
        std::vector<float> velocity = {0};
        const OuterSgd nesterov{0.5F, 0.5F, true};
        kernels::outer_sgd_step(nesterov, std::vector<float>{4}, theta, velocity, set);
        EXPECT_EQ(velocity[0], 4);
        EXPECT_EQ(theta[0], 7);  // 10 − 0.5 (4 + 0.5·4)
        kernels::outer_sgd_step(nesterov, std::vector<float>{2}, theta, velocity, set);
        EXPECT_EQ(velocity[0], 4);
        EXPECT_EQ(theta[0], 5);  // 7 − 0.5 (2 + 0.5·4)

        theta = {10};
        velocity = {2};
        kernels::outer_sgd_step({0.5F, 0.5F, false}, std::vector<float>{4}, theta, velocity, set);
        EXPECT_EQ(velocity[0], 5);
        EXPECT_EQ(theta[0], 7.5F);

        theta = {10};
        kernels::outer_sgd_step({0.5F, 0, true}, std::vector<float>{4}, theta, {}, set);
        EXPECT_EQ(theta[0], 8);
    }
}

TEST(OuterStep, learning_rate_one_without_momentum_gives_the_local_values_back) {
    for (const auto set : test::supported_sets()) {
        const std::vector<float> before = {1.5F, -2, 0, 8};
        const std::vector<float> after = {1.25F, -3, 4, 8};
        std::vector<float> delta(4);
        kernels::subtract(before, after, delta, set);
        EXPECT_EQ(delta, (std::vector<float>{0.25F, 1, -4, 0}));
        std::vector<float> theta = before;
        kernels::outer_sgd_step({1, 0, true}, delta, theta, {}, set);
        EXPECT_EQ(theta, after);
    }
}

// Everything this header offers, in one row, on odd sizes.
std::vector<float> work_through(int count, InstructionSet set) {
    const auto local = normal_values<float>(count, 1);
    const auto other = normal_values<float>(count, 2);
    auto theta = normal_values<float>(count, 3);
    auto velocity = normal_values<float>(count, 4);
    std::vector<float> delta(count);
    kernels::subtract(theta, local, delta, set);
    kernels::add_weighted(other, 0.3F, delta, set);
    kernels::scale(delta, 1.0F / 3, set);
    const std::vector<const float*> inputs = {delta.data(), local.data(), other.data()};
    EXPECT_TRUE(kernels::weighted_mean(inputs, std::vector{1.5F, 0.3F, 1.0F}, 2.8F, delta, kernels::ReadAgain::soon, set));
    kernels::outer_sgd_step({0.7F, 0.9F, true}, delta, theta, velocity, set);
    std::vector<float> second(count);
    for (std::int64_t step = 1; step <= 3; ++step)
        kernels::outer_adam_step({.learning_rate = 0.1F, .step = step}, delta, theta, velocity, second, set);
    kernels::outer_sgd_step({0.7F, 0.9F, false}, delta, theta, velocity, set);
    kernels::outer_sgd_step({0.7F, 0, false}, delta, theta, {}, set);
    kernels::interpolate(other, 0.4F, theta, set);
    theta.push_back(static_cast<float>(kernels::norm(velocity, set)));
    return theta;
}

TEST(OuterStep, every_instruction_set_gives_the_same_bits) {
    for (const int count : {1, 3, 16, 17, 255, 10007}) {
        const auto expected = work_through(count, InstructionSet::baseline);
        for (const auto set : test::supported_sets())
            EXPECT_EQ(work_through(count, set), expected) << name(set);
    }
}

TEST(OuterStep, every_operation_is_rounded_on_its_own) {
    // With fused multiply-add, 1 − (1 + ε)(1 − ε) would be ε²; rounded apart it is 0.
    const float epsilon = 0x1p-13F;
    for (const auto set : test::supported_sets()) {
        std::vector<float> sum(40, -1.0F);
        kernels::add_weighted(std::vector<float>(40, 1 + epsilon), 1 - epsilon, sum, set);
        EXPECT_EQ(sum, std::vector<float>(40, (1 + epsilon) * (1 - epsilon) - 1));
        EXPECT_EQ(sum[0], 0);
    }
}

TEST(OuterStep, interpolating_fully_copies_and_not_at_all_keeps) {
    for (const auto set : test::supported_sets()) {
        const std::vector<float> source = {1e-8F, 3};
        std::vector<float> target = {1e8F, 5};
        kernels::interpolate(source, 0, target, set);
        EXPECT_EQ(target, (std::vector<float>{1e8F, 5}));
        kernels::interpolate(source, 0.5F, target, set);
        EXPECT_EQ(target, (std::vector<float>{5e7F, 4}));
        kernels::interpolate(source, 1, target, set);
        EXPECT_EQ(target, source);
    }
}

TEST(OuterStep, a_mean_is_the_same_in_the_cache_and_past_it_wherever_it_lies) {
    for (const auto set : test::supported_sets()) {
        for (const int count : {0, 1, 15, 64, 255, 10007}) {
            const auto one = normal_values<float>(count, 1);
            const auto other = normal_values<float>(count, 2);
            const std::vector<const float*> inputs = {one.data(), other.data()};
            std::vector<float> expected(count);
            EXPECT_TRUE(kernels::weighted_mean(inputs, std::vector{1.5F, 0.3F}, 1.8F, expected, kernels::ReadAgain::soon, set));
            for (std::size_t misplaced = 0; misplaced < 17; ++misplaced) {
                std::vector<float> mean(expected.size() + 32, -1);
                const auto place = std::span(mean).subspan(misplaced, expected.size());
                EXPECT_TRUE(kernels::weighted_mean(inputs, std::vector{1.5F, 0.3F}, 1.8F, place, kernels::ReadAgain::late, set));
                EXPECT_TRUE(std::ranges::equal(place, expected)) << count << " from " << misplaced;
                EXPECT_EQ(std::ranges::count(mean, -1.0F), 32) << "nothing beside it was written";
            }
        }
    }
}

TEST(OuterStep, finds_a_non_finite_value_anywhere) {
    for (const auto set : test::supported_sets()) {
        EXPECT_TRUE(kernels::all_finite({}, set));
        for (const std::size_t place : {0, 16, 2239, 2240, 4095, 4096, 6719, 8959, 8960, 9002}) {
            std::vector<float> values(9003, 3e38F);
            EXPECT_TRUE(kernels::all_finite(values, set));
            for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
                values[place] = bad;
                EXPECT_FALSE(kernels::all_finite(values, set)) << place;
            }
        }
    }
}

TEST(OuterStep, norm_is_exact_to_f64_and_does_not_overflow) {
    for (const auto set : test::supported_sets()) {
        EXPECT_EQ(kernels::norm(std::vector<float>{3, 4}, set), 5);
        EXPECT_NEAR(kernels::norm(std::vector<float>(100, 1e30F), set) / 1e31, 1, 1e-7);
        EXPECT_EQ(kernels::norm({}, set), 0);
    }
}

TEST(OuterStep, refuses_spans_of_different_lengths) {
    std::vector<float> three(3);
    const std::vector<float> two(2);
    EXPECT_THROW(kernels::subtract(two, three, three), CheckError);
    EXPECT_THROW(kernels::add_weighted(two, 1, three), CheckError);
    EXPECT_THROW(kernels::outer_sgd_step({1, 0.5F, true}, two, three, three), CheckError);
}

}  // namespace
}  // namespace atl
