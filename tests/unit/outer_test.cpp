// The arithmetic of the outer loop against hand-worked numbers: sign of Δ, the outer optimizers, weights, mixing,
// fragments and the buffers of the outer state.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "core/check.h"
#include "core/random.h"
#include "outer/fragments.h"
#include "outer/outer.h"
#include "outer/outer_model.h"
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
        outer_step(settings, Round(0), delta, anchor, {.momentum = momentum});
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
    outer_step({.lr = 0.7f, .momentum = 0.9f}, Round(0), delta, anchor, {.momentum = momentum});
    EXPECT_EQ(momentum, delta);
}

TEST(OuterStep, rounds_every_operation_separately) {
    // volatile forces each intermediate to a float of its own: a fused multiply-add would differ.
    const OuterSettings settings{.lr = 0.7f, .momentum = 0.9f};
    std::vector<float> anchor = normals(1, 1000), momentum = normals(2, 1000);
    const std::vector<float> delta = normals(3, 1000), anchor_before = anchor, momentum_before = momentum;
    outer_step(settings, Round(0), delta, anchor, {.momentum = momentum});
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
    outer_step({.rule = OuterRule::sgd, .lr = 0.3f}, Round(0), delta, once, {});
    outer_step({.rule = OuterRule::sgd, .lr = 0.3f}, Round(0), four_times, scaled, {});
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(scaled[i], 4 * once[i]);
}

TEST(OuterStep, refuses_buffers_of_different_sizes) {
    std::vector<float> two(2), three(3);
    EXPECT_THROW(outer_step({}, Round(0), two, three, {.momentum = three}), CheckError);
    EXPECT_THROW(outer_step({}, Round(0), three, three, {.momentum = two}), CheckError);
    EXPECT_THROW(contribution(two, three, three), CheckError);
    EXPECT_THROW(mix_into_local(0, two, three), CheckError);
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
        apply_outer({.rule = OuterRule::sgd, .lr = 1, .alpha = alpha}, Round(0), delta, anchor, {.momentum = momentum},
                    local);
        EXPECT_EQ(anchor[0], 4) << "the anchor is the stepped value, not the mix";
        return local[0];
    };
    EXPECT_EQ(local_after(0), 4);
    EXPECT_EQ(local_after(0.25f), 6);
    EXPECT_EQ(local_after(1), 12);
}

// t = 1: m = 0.5·4, v = 0.25·16; corrected by 1 − 0.5 and 1 − 0.75 they are 4 and 16. t = 2: m = 1 + 1 = 2 over 0.75, v = 3 + 1
// = 4 over 1 − 0.5625.
TEST(OuterStep, adam_matches_hand_worked_numbers) {
    const OuterSettings settings{
        .rule = OuterRule::adam, .lr = 0.5f, .momentum = 0.5f, .second_decay = 0.75f, .epsilon = 0};
    std::array<float, 1> anchor{10}, momentum{0}, second{0};
    const OuterMoments moments{.momentum = momentum, .second = second};
    outer_step(settings, Round(0), std::array<float, 1>{4}, anchor, moments);
    EXPECT_EQ(momentum[0], 2);
    EXPECT_EQ(second[0], 4);
    EXPECT_FLOAT_EQ(anchor[0], 10 - 0.5f * 4 / 4);
    outer_step(settings, Round(1), std::array<float, 1>{2}, anchor, moments);
    EXPECT_EQ(momentum[0], 2);
    EXPECT_EQ(second[0], 4);
    EXPECT_FLOAT_EQ(anchor[0], 9.5f - 0.5f * (2 / 0.75f) / std::sqrt(4 / 0.4375f));
}

TEST(Fragments, deal_layers_out_in_strides) {
    EXPECT_EQ(fragment_of_layer(std::nullopt, 3), FragmentId(0));
    EXPECT_EQ(fragment_of_layer(4, 3), FragmentId(1));
    EXPECT_EQ(fragment_of_layer(4, 1), FragmentId(0));
}

TEST(Fragments, keep_every_parameter_once_in_the_order_of_the_tensors_names) {
    const auto fragments = cut_into_fragments({{"model.norm.weight", 2},
                                               {"model.layers.1.mlp.weight", 3},
                                               {"model.layers.0.mlp.weight", 4},
                                               {"model.layers.2.mlp.weight", 5},
                                               {"lm_head.weight", 6}},
                                              2);
    ASSERT_EQ(fragments.size(), 2u);
    std::vector<std::string> names;
    for (const OuterSlice& slice : fragments[0]) names.push_back(slice.tensor);
    EXPECT_EQ(names, (std::vector<std::string>{"lm_head.weight", "model.layers.0.mlp.weight",
                                               "model.layers.2.mlp.weight", "model.norm.weight"}));
    ASSERT_EQ(fragments[1].size(), 1u);
    EXPECT_EQ(fragments[1][0].first_parameter, 6 + 4);
    std::set<std::int64_t> parameters;
    for (const auto& slices : fragments)
        for (const OuterSlice& slice : slices)
            for (std::int64_t i = 0; i < slice.elements; ++i)
                EXPECT_TRUE(parameters.insert(slice.first_parameter + i).second);
    EXPECT_EQ(parameters.size(), 20u);
    EXPECT_EQ(*parameters.rbegin(), 19);
}

// Two fragments exchanged one after the other are the same as the whole model at once.
TEST(OuterModel, steps_each_fragment_by_itself) {
    const std::vector<std::pair<std::string, std::int64_t>> tensors{
        {"layers.0.weight", 5}, {"layers.1.weight", 7}, {"norm.weight", 3}};
    const OuterSettings settings{.rule = OuterRule::nesterov, .lr = 0.7f, .momentum = 0.9f};
    std::vector<std::vector<float>> anchors;
    for (const int count : {1, 2}) {
        OuterModel model({.tensors_and_elements = tensors, .fragments = count});
        std::vector<float> parameters = normals(1, 15);
        model.begin(parameters);
        for (std::uint64_t round = 0; round < 3; ++round) {
            const auto moved = normals(2 + round, 15, 0.1);
            for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= moved[i];
            for (int p = 0; p < count; ++p) {
                std::vector<float> delta(static_cast<std::size_t>(model.fragment(FragmentId(p)).elements()));
                model.contribute(FragmentId(p), parameters, {}, delta);
                model.apply(FragmentId(p), settings,
                            {.mean = delta, .round = Round(static_cast<std::int64_t>(round))}, parameters);
            }
        }
        std::vector<float> whole(15);
        model.copy_anchors(whole);
        EXPECT_EQ(whole, parameters) << "without α local parameters are the anchors";
        anchors.push_back(whole);
    }
    EXPECT_EQ(anchors[0], anchors[1]);
}

// The local steps of an overlap survive an apply as far as α says, and Δ is measured from the anchor, not from the mix.
TEST(OuterModel, measures_from_the_anchor_and_not_from_the_mix) {
    OuterModel model({.tensors_and_elements = {{"w", 1}}, .buffers = {.momentum = false}});
    std::vector<float> local{10};
    model.begin(local);
    local[0] = 8;
    std::vector<float> delta(1);
    model.contribute(FragmentId(0), local, {}, delta);
    EXPECT_EQ(delta[0], 2);
    local[0] = 6;  // meanwhile
    model.apply(FragmentId(0), {.rule = OuterRule::sgd, .lr = 1, .alpha = 0.5f}, {.mean = delta}, local);
    EXPECT_EQ(local[0], 7) << "half of its own 6, half of the anchor's 8";
    model.contribute(FragmentId(0), local, {}, delta);
    EXPECT_EQ(delta[0], 1);
}

TEST(OuterFragment, names_a_section_for_every_element_of_its_state) {
    OuterFragment fragment(cut_into_fragments({{"a", 3}, {"b", 5}}, 1)[0],
                           {.momentum = true, .second_moment = true, .residual = true, .own_start = true,
                            .own_momentum = true});
    EXPECT_EQ(fragment.elements(), 8);
    std::vector<std::string> names;
    for (const auto& section : fragment.sections()) {
        names.push_back(section.name);
        std::fill(section.values.begin(), section.values.end(), 1.0f);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"anchor/a", "anchor/b", "outer_momentum/a", "outer_momentum/b",
                                               "outer_second/a", "outer_second/b", "residual/a", "residual/b",
                                               "start/a", "start/b", "own_momentum/a", "own_momentum/b"}));
    for (const auto buffer : {fragment.anchor(), fragment.momentum(), fragment.second_moment(), fragment.residual(),
                              fragment.start(), fragment.own_momentum()}) {
        EXPECT_EQ(buffer.size(), 8u);
        for (const float value : buffer) EXPECT_EQ(value, 1);
    }
    EXPECT_EQ(OuterFragment(cut_into_fragments({{"a", 3}}, 1)[0], {.momentum = false}).sections().size(), 1u);
}

TEST(OuterFragment, refuses_slices_with_gaps) {
    EXPECT_THROW(OuterFragment({{"a", 0, 3}, {"b", 4, 1}}, {}), CheckError);
}

}  // namespace
}  // namespace atl
