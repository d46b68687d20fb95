// The arithmetic of the outer loop against hand-worked numbers: sign of Δ, the three optimizers, weights, mixing,
// the payload formula, the fragment schedule and the buffers of the outer state.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "core/check.h"
#include "core/random.h"
#include "outer/fragment_schedule.h"
#include "outer/outer.h"
#include "outer/outer_state.h"

namespace atl {
namespace {

std::vector<float> normals(std::uint64_t stream, std::size_t count, double scale = 1) {
    const RandomStream random(11, stream);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(scale * random.normal(i));
    return values;
}

// Anchor after each of three steps with Δ = 1, γ = 0.1, μ = 0.5 from θ = 1.
std::array<float, 3> three_steps(OuterRule rule) {
    const OuterSettings settings{.rule = rule, .lr = 0.1f, .momentum = 0.5f};
    std::array<float, 1> anchor{1}, momentum{0};
    const std::array<float, 1> delta{1};
    std::array<float, 3> history{};
    for (float& value : history) {
        outer_step(settings, delta, anchor, momentum);
        value = anchor[0];
    }
    return history;
}

void expect_near(const std::array<float, 3>& actual, const std::array<float, 3>& expected) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-7) << "step " << i;
}

TEST(OuterStep, follows_the_hand_worked_values_of_each_rule) {
    expect_near(three_steps(OuterRule::nesterov), {0.85f, 0.675f, 0.4875f});
    expect_near(three_steps(OuterRule::heavy_ball), {0.9f, 0.75f, 0.575f});
    expect_near(three_steps(OuterRule::sgd), {0.9f, 0.8f, 0.7f});
    expect_near(three_steps(OuterRule::average), {0, -1, -2});
}

TEST(OuterStep, the_first_nesterov_step_sets_the_momentum_to_the_mean) {
    std::vector<float> anchor = normals(1, 50), momentum(50);
    const std::vector<float> delta = normals(2, 50);
    outer_step({.lr = 0.7f, .momentum = 0.9f}, delta, anchor, momentum);
    EXPECT_EQ(momentum, delta);
}

TEST(OuterStep, rounds_every_operation_separately) {
    // volatile forces each intermediate to a float of its own: a fused multiply-add would differ.
    const OuterSettings settings{.lr = 0.7f, .momentum = 0.9f};
    std::vector<float> anchor = normals(1, 1000), momentum = normals(2, 1000);
    const std::vector<float> delta = normals(3, 1000), anchor_before = anchor, momentum_before = momentum;
    outer_step(settings, delta, anchor, momentum);
    for (std::size_t i = 0; i < delta.size(); ++i) {
        volatile float decayed = settings.momentum * momentum_before[i];
        volatile float stepped = decayed + delta[i];
        volatile float ahead = settings.momentum * stepped;
        volatile float direction = delta[i] + ahead;
        volatile float move = settings.lr * direction;
        EXPECT_EQ(momentum[i], stepped) << i;
        EXPECT_EQ(anchor[i], anchor_before[i] - move) << i;
    }
}

TEST(OuterStep, sgd_is_linear_in_the_mean) {
    const std::vector<float> delta = normals(4, 200);
    std::vector<float> four_times = delta;
    for (float& value : four_times) value *= 4;
    std::vector<float> once(200), scaled(200);
    outer_step({.rule = OuterRule::sgd, .lr = 0.3f}, delta, once, {});
    outer_step({.rule = OuterRule::sgd, .lr = 0.3f}, four_times, scaled, {});
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(scaled[i], 4 * once[i]);
}

TEST(OuterStep, refuses_buffers_of_different_sizes) {
    std::vector<float> two(2), three(3);
    EXPECT_THROW(outer_step({}, two, three, three), CheckError);
    EXPECT_THROW(outer_step({}, three, three, two), CheckError);
    EXPECT_THROW(contribution(two, three, three), CheckError);
    EXPECT_THROW(mix_into_local(0, two, three), CheckError);
}

TEST(OuterRule, comes_from_method_momentum_and_nesterov) {
    EXPECT_EQ(outer_rule(false, 0.9, true), OuterRule::nesterov);
    EXPECT_EQ(outer_rule(false, 0.9, false), OuterRule::heavy_ball);
    EXPECT_EQ(outer_rule(false, 0, true), OuterRule::sgd);
    EXPECT_EQ(outer_rule(true, 0.9, true), OuterRule::average);
}

TEST(Contribution, is_the_anchor_minus_the_local_value) {
    const std::array<float, 2> anchor{5, 1}, local{2, 4};
    std::array<float, 2> delta{};
    contribution(anchor, local, delta);
    EXPECT_EQ(delta, (std::array<float, 2>{3, -3}));
    std::array<float, 2> in_place = local;
    contribution(anchor, in_place, in_place);
    EXPECT_EQ(in_place, delta);
}

TEST(WeightedMean, normalises_by_the_weights_that_arrived) {
    const std::array<float, 1> four{4}, zero{0};
    std::array<float, 1> mean{};
    weighted_mean(std::vector<WeightedDelta>{{four, 1}, {zero, 3}}, mean);
    EXPECT_EQ(mean[0], 1);
    weighted_mean(std::vector<WeightedDelta>{{four, 1}}, mean);
    EXPECT_EQ(mean[0], 4);
    EXPECT_THROW(weighted_mean({}, mean), CheckError);
}

TEST(WeightedMean, of_equal_weights_is_the_plain_mean_and_of_one_site_its_own_delta) {
    const std::vector<float> a = normals(5, 300), b = normals(6, 300);
    std::vector<float> mean(300);
    weighted_mean(std::vector<WeightedDelta>{{a, 1003}}, mean);
    EXPECT_EQ(mean, a);
    weighted_mean(std::vector<WeightedDelta>{{a, 1003}, {b, 1003}}, mean);
    for (std::size_t i = 0; i < mean.size(); ++i) EXPECT_EQ(mean[i], (a[i] + b[i]) / 2);
}

TEST(WeightedMean, does_not_depend_on_how_two_sites_are_labelled) {
    const std::vector<float> a = normals(5, 300), b = normals(6, 300);
    std::vector<float> ab(300), ba(300);
    weighted_mean(std::vector<WeightedDelta>{{a, 3}, {b, 5}}, ab);
    weighted_mean(std::vector<WeightedDelta>{{b, 5}, {a, 3}}, ba);
    EXPECT_EQ(ab, ba);
}

TEST(ApplyOuter, alpha_is_the_share_of_the_local_value_that_stays) {
    const auto local_after = [](float alpha) {
        std::array<float, 1> anchor{8}, momentum{0}, local{12};
        const std::array<float, 1> delta{4};
        apply_outer({.rule = OuterRule::sgd, .lr = 1, .alpha = alpha}, delta, anchor, momentum, local);
        EXPECT_EQ(anchor[0], 4) << "the anchor is the stepped value, not the mix";
        return local[0];
    };
    EXPECT_EQ(local_after(0), 4);
    EXPECT_EQ(local_after(0.25f), 6);
    EXPECT_EQ(local_after(1), 12);
}

TEST(Payload, is_one_contribution_between_two_sites_and_two_legs_between_more) {
    EXPECT_EQ(payload_bytes_sent({.contribution_bytes = 800}, 1), 0);
    EXPECT_EQ(payload_bytes_sent({.contribution_bytes = 800}, 2), 800);
    // Four equal owners, equal sizes both ways: 2(M − 1)/M · V.
    EXPECT_EQ(payload_bytes_sent({800, 200, 200}, 4), 2 * 3 * 800 / 4);
    // An 8-bit contribution, 16-bit means; a site that owns nothing sends its contribution only.
    EXPECT_EQ(payload_bytes_sent({800, 200, 400}, 4), 800 - 200 + 3 * 400);
    EXPECT_EQ(payload_bytes_sent({800, 0, 0}, 5), 800);
}

TEST(FragmentSchedule, with_one_fragment_starts_at_the_end_of_every_round) {
    const FragmentSchedule schedule{.inner_steps = 5};
    schedule.check();
    for (int step = 0; step <= 20; ++step) {
        const bool end_of_round = step > 0 && step % 5 == 0;
        EXPECT_EQ(schedule.starts_after(Step(step)).has_value(), end_of_round) << step;
        EXPECT_EQ(schedule.applies_after(Step(step)).has_value(), end_of_round) << step;
        EXPECT_TRUE(schedule.quiescent_after(Step(step)));
    }
}

TEST(FragmentSchedule, starts_every_fragment_once_a_round_and_applies_it_tau_steps_later) {
    const FragmentSchedule schedule{.inner_steps = 30, .fragments = 4, .overlap_steps = 7};
    schedule.check();
    EXPECT_EQ(schedule.offset_steps(FragmentId(0)), 0);
    EXPECT_EQ(schedule.offset_steps(FragmentId(1)), 7);
    EXPECT_EQ(schedule.offset_steps(FragmentId(3)), 22);
    EXPECT_EQ(schedule.starts_after(Step(37)), FragmentId(1));  // 7 + 30
    EXPECT_EQ(schedule.starts_after(Step(30)), FragmentId(0));
    EXPECT_EQ(schedule.applies_after(Step(59)),
              FragmentId(3));  // 22 + 30 + 7: nothing pending after 60 but 0
    std::set<FragmentId> started, pending{FragmentId(0)};
    for (int step = 61; step <= 120; ++step) {
        if (const auto fragment = schedule.applies_after(Step(step))) pending.erase(*fragment);
        if (const auto fragment = schedule.starts_after(Step(step))) {
            started.insert(*fragment);
            pending.insert(*fragment);
            EXPECT_EQ(schedule.applies_after(Step(step + 7)), fragment);
        }
        EXPECT_LE(pending.size(), 1u);
        EXPECT_EQ(schedule.quiescent_after(Step(step)), pending.empty()) << step;
        if (step % 30 == 0) {
            EXPECT_EQ(started.size(), 4u);
            started.clear();
        }
    }
}

TEST(FragmentSchedule, refuses_an_overlap_that_would_leave_two_fragments_pending) {
    EXPECT_NO_THROW((FragmentSchedule{30, 4, 7}.check()));
    EXPECT_THROW((FragmentSchedule{30, 4, 8}.check()), CheckError);
    EXPECT_THROW((FragmentSchedule{3, 4, 0}.check()), CheckError);
}

TEST(FragmentSchedule, deals_layers_out_in_strides) {
    EXPECT_EQ(fragment_of_layer(std::nullopt, 3), FragmentId(0));
    EXPECT_EQ(fragment_of_layer(4, 3), FragmentId(1));
    EXPECT_EQ(fragment_of_layer(4, 1), FragmentId(0));
}

TEST(RoundSteps, the_last_round_takes_what_is_left_of_the_run) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t step = 0; step < 100; step += lengths.back())
        lengths.push_back(round_steps(Step(step), 30, Step(100)));
    EXPECT_EQ(lengths, (std::vector<std::int64_t>{30, 30, 30, 10}));
}

TEST(OuterFragment, names_a_section_for_every_element_of_its_state) {
    OuterFragment fragment(consecutive_slices({{"a", 3}, {"b", 5}}), true, true);
    EXPECT_EQ(fragment.elements(), 8);
    std::vector<std::string> names;
    for (const auto& section : fragment.sections()) {
        names.push_back(section.name);
        std::fill(section.values.begin(), section.values.end(), 1.0f);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"anchor/a", "anchor/b", "outer_momentum/a", "outer_momentum/b",
                                               "residual/a", "residual/b"}));
    for (const auto buffer : {fragment.anchor(), fragment.momentum(), fragment.residual()}) {
        EXPECT_EQ(buffer.size(), 8u);
        for (const float value : buffer) EXPECT_EQ(value, 1);
    }
    EXPECT_EQ(OuterFragment(consecutive_slices({{"a", 3}}), false, false).sections().size(), 1u);
}

TEST(OuterFragment, refuses_slices_with_gaps) {
    EXPECT_THROW(OuterFragment({{"a", 0, 3}, {"b", 4, 1}}, true, false), CheckError);
}

}  // namespace
}  // namespace atl
