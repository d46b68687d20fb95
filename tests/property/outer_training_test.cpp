// The outer loop around toy training. Each site fits its own noisy samples of one linear map by SGD or AdamW;
// with plain settings the loop must reduce to what a single trainer does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/random.h"
#include "outer/outer.h"

namespace atl {
namespace {

constexpr std::size_t kParameters = 24;
constexpr std::size_t kSamples = 16;
using Vector = std::vector<float>;

// Gradient of the mean of (x·θ − y)²/2 over the samples of one (site, step).
Vector gradient(const Vector& theta, int site, int step) {
    const RandomStream random(5, static_cast<std::uint64_t>(1000 * site + step));
    Vector result(kParameters);
    std::uint64_t index = 0;
    for (std::size_t sample = 0; sample < kSamples; ++sample) {
        Vector x(kParameters);
        double error = 0.3 * random.normal(index++);
        for (std::size_t i = 0; i < kParameters; ++i) {
            x[i] = static_cast<float>(random.normal(index++));
            error += x[i] * (theta[i] - std::sin(1.0 + static_cast<double>(i)));
        }
        for (std::size_t i = 0; i < kParameters; ++i)
            result[i] += static_cast<float>(error * x[i] / kSamples);
    }
    return result;
}

double distance_to_optimum(const Vector& theta) {
    double sum = 0;
    for (std::size_t i = 0; i < kParameters; ++i)
        sum += std::pow(theta[i] - std::sin(1.0 + static_cast<double>(i)), 2);
    return std::sqrt(sum);
}

struct Inner {
    bool adam = false;
    Vector theta = Vector(kParameters), first = Vector(kParameters), second = Vector(kParameters);
    int steps = 0;

    void step(int site) {
        const Vector g = gradient(theta, site, steps++);
        for (std::size_t i = 0; i < kParameters; ++i) {
            if (!adam) {
                theta[i] -= 0.05f * g[i];
                continue;
            }
            first[i] = 0.9f * first[i] + 0.1f * g[i];
            second[i] = 0.95f * second[i] + 0.05f * g[i] * g[i];
            const float corrected = first[i] / (1 - std::pow(0.9f, static_cast<float>(steps)));
            const float scale = std::sqrt(second[i] / (1 - std::pow(0.95f, static_cast<float>(steps))));
            theta[i] -= 0.02f * (corrected / (scale + 1e-8f) + 0.01f * theta[i]);
        }
    }
};

struct Outer {
    OuterSettings settings;
    Vector anchor = Vector(kParameters), momentum = Vector(kParameters), second = Vector(kParameters);
    std::int64_t rounds = 0;

    // One round of H steps on every site whose weight isn't 0: those didn't arrive.
    // `first`: the number of the first one, by which it finds its samples.
    void round(std::vector<Inner>& sites, int inner_steps, const std::vector<double>& weights, int first = 0) {
        std::vector<Vector> deltas;
        std::vector<WeightedDelta> contributions;
        for (std::size_t site = 0; site < sites.size(); ++site) {
            for (int step = 0; step < inner_steps; ++step) sites[site].step(first + static_cast<int>(site));
            contribution(anchor, sites[site].theta, deltas.emplace_back(kParameters));
        }
        for (std::size_t site = 0; site < sites.size(); ++site)
            if (weights[site] > 0) contributions.push_back({deltas[site], weights[site]});
        Vector mean(kParameters);
        weighted_mean(contributions, mean);
        outer_step(settings, Round(rounds++), mean, anchor, {.momentum = momentum, .second = second});
        for (auto& site : sites) mix_into_local(settings.alpha, anchor, site.theta);
    }
};

constexpr OuterSettings kIdentity{.rule = OuterRule::sgd, .lr = 1};

TEST(OuterTraining, with_h_1_sgd_and_lr_1_equals_synchronous_data_parallel) {
    const std::vector<double> tokens = {1, 2, 5};
    std::vector<Inner> sites(3);
    Outer outer{kIdentity};
    Vector theta(kParameters);  // one trainer with the token-weighted mean gradient
    for (int step = 0; step < 20; ++step) {
        Vector mean(kParameters);
        for (int site = 0; site < 3; ++site) {
            const Vector g = gradient(theta, site, step);
            for (std::size_t i = 0; i < kParameters; ++i)
                mean[i] += static_cast<float>(tokens[static_cast<std::size_t>(site)] / 8) * g[i];
        }
        for (std::size_t i = 0; i < kParameters; ++i) theta[i] -= 0.05f * mean[i];
        outer.round(sites, 1, tokens);
        for (std::size_t i = 0; i < kParameters; ++i) EXPECT_NEAR(outer.anchor[i], theta[i], 1e-6) << step;
    }
    EXPECT_LT(distance_to_optimum(theta), 0.8 * distance_to_optimum(Vector(kParameters)));
}

TEST(OuterTraining, of_one_site_with_lr_1_equals_plain_training) {
    for (const int inner_steps : {1, 7, 20}) {
        std::vector<Inner> sites(1, Inner{.adam = true});
        Inner plain{.adam = true};
        Outer outer{kIdentity};
        for (int round = 0; round < 10; ++round) {
            outer.round(sites, inner_steps, {1});
            for (int step = 0; step < inner_steps; ++step) plain.step(0);
            // θ − (θ − θ') rounds once, at the larger of θ and θ': one unit in the last place a round.
            for (std::size_t i = 0; i < kParameters; ++i)
                EXPECT_NEAR(outer.anchor[i], plain.theta[i], (round + 1) * 1.2e-7f) << inner_steps;
        }
    }
}

TEST(OuterTraining, keeps_the_inner_optimizers_state_through_a_commit) {
    std::vector<Inner> sites(1, Inner{.adam = true});
    Inner plain{.adam = true};
    Outer outer{kIdentity};
    for (int step = 0; step < 7; ++step) plain.step(0);
    outer.round(sites, 7, {1});
    EXPECT_EQ(sites[0].steps, plain.steps);
    EXPECT_EQ(sites[0].first, plain.first);
    EXPECT_EQ(sites[0].second, plain.second);
}

TEST(OuterTraining, averaging_gives_the_mean_of_the_sites_parameters) {
    std::vector<Inner> sites(3), alone(3);
    Outer outer{{.rule = OuterRule::average, .lr = 0.1f}};
    outer.round(sites, 10, {1, 1, 1});
    for (int site = 0; site < 3; ++site)
        for (int step = 0; step < 10; ++step) alone[static_cast<std::size_t>(site)].step(site);
    for (std::size_t i = 0; i < kParameters; ++i)
        EXPECT_NEAR(outer.anchor[i], (alone[0].theta[i] + alone[1].theta[i] + alone[2].theta[i]) / 3, 1e-6);
}

TEST(OuterTraining, relabelling_the_sites_leaves_the_result_unchanged_to_rounding) {
    std::vector<Vector> deltas;
    for (int site = 0; site < 5; ++site) deltas.push_back(gradient(Vector(kParameters), site, 0));
    std::vector<int> order(5);
    std::iota(order.begin(), order.end(), 0);
    Vector reference;
    do {
        std::vector<WeightedDelta> contributions;
        for (const int site : order) {
            const auto index = static_cast<std::size_t>(site);
            contributions.push_back({deltas[index], 1.0 + site});
        }
        Vector mean(kParameters);
        weighted_mean(contributions, mean);
        if (reference.empty()) reference = mean;
        for (std::size_t i = 0; i < kParameters; ++i) EXPECT_NEAR(mean[i], reference[i], 2e-6);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(OuterTraining, a_missing_site_leaves_the_mean_of_the_others) {
    std::vector<Inner> three(3), two(2);
    Outer with_a_loss{{.lr = 0.7f, .momentum = 0.9f}}, of_two{{.lr = 0.7f, .momentum = 0.9f}};
    for (int round = 0; round < 3; ++round) {
        with_a_loss.round(three, 5, {2, 3, 0});
        of_two.round(two, 5, {2, 3});
    }
    EXPECT_EQ(with_a_loss.anchor, of_two.anchor);
    EXPECT_EQ(with_a_loss.momentum, of_two.momentum);
}

TEST(OuterTraining, a_short_last_round_counts_with_its_own_weight) {
    // Δ of a round of 3 steps where the other site did 10: the mean is weighted by the steps' tokens.
    std::vector<Inner> sites(2);
    for (int step = 0; step < 3; ++step) sites[0].step(0);
    for (int step = 0; step < 10; ++step) sites[1].step(1);
    const Vector anchor(kParameters);
    Vector delta_a(kParameters), delta_b(kParameters), mean(kParameters);
    contribution(anchor, sites[0].theta, delta_a);
    contribution(anchor, sites[1].theta, delta_b);
    weighted_mean(std::vector<WeightedDelta>{{delta_a, 3 * 64}, {delta_b, 10 * 64}}, mean);
    for (std::size_t i = 0; i < kParameters; ++i)
        EXPECT_NEAR(mean[i], (3 * delta_a[i] + 10 * delta_b[i]) / 13, 1e-6);
}

// Two levels: in a region every `inner_steps` of its workers, between regions after so many rounds of theirs.
struct TwoLevels {
    Outer high;
    std::vector<Outer> regions;
    std::vector<std::vector<Inner>> workers;

    void round(int inner_steps, int rounds_of_regions) {
        std::vector<Vector> deltas;
        std::vector<WeightedDelta> contributions;
        int first = 0;
        for (std::size_t i = 0; i < regions.size(); ++i) {
            for (int k = 0; k < rounds_of_regions; ++k)
                regions[i].round(workers[i], inner_steps, std::vector<double>(workers[i].size(), 1), first);
            first += static_cast<int>(workers[i].size());
            contribution(high.anchor, regions[i].anchor, deltas.emplace_back(kParameters));
        }
        for (const Vector& delta : deltas) contributions.push_back({delta, 1});
        Vector mean(kParameters);
        weighted_mean(contributions, mean);
        outer_step(high.settings, Round(high.rounds++), mean, high.anchor, {.momentum = high.momentum});
        for (std::size_t i = 0; i < regions.size(); ++i) {
            regions[i].anchor = high.anchor;
            for (Inner& worker : workers[i]) worker.theta = high.anchor;
        }
    }
};

TEST(OuterTraining, on_two_levels_of_which_one_is_a_single_region_equals_the_lower_level_alone) {
    const OuterSettings nesterov{.lr = 0.7f, .momentum = 0.9f};
    TwoLevels two{{kIdentity}, {Outer{nesterov}}, {std::vector<Inner>(3)}};
    std::vector<Inner> sites(3);
    Outer one{nesterov};
    for (int round = 0; round < 8; ++round) {
        two.round(5, 1);
        one.round(sites, 5, {1, 1, 1});
        for (std::size_t i = 0; i < kParameters; ++i)
            EXPECT_NEAR(two.high.anchor[i], one.anchor[i], 1e-6 * (round + 1)) << "round " << round;
    }
}

TEST(OuterTraining, on_two_levels_with_one_worker_a_region_equals_longer_rounds_on_one) {
    const OuterSettings nesterov{.lr = 0.7f, .momentum = 0.9f};
    TwoLevels two{{nesterov}, std::vector<Outer>(3, Outer{kIdentity}), std::vector(3, std::vector<Inner>(1))};
    std::vector<Inner> sites(3);
    Outer one{nesterov};
    for (int round = 0; round < 6; ++round) {
        two.round(4, 3);
        one.round(sites, 12, {1, 1, 1});
        for (std::size_t i = 0; i < kParameters; ++i)
            EXPECT_NEAR(two.high.anchor[i], one.anchor[i], 2e-6 * (round + 1)) << "round " << round;
    }
}

TEST(OuterTraining, adam_outside_brings_several_sites_near_the_common_optimum) {
    std::vector<Inner> sites(4);
    Outer outer{{.rule = OuterRule::adam, .lr = 0.1f, .momentum = 0.5f, .second_decay = 0.9f, .epsilon = 1e-3f}};
    for (int round = 0; round < 40; ++round) outer.round(sites, 10, {1, 1, 1, 1});
    EXPECT_LT(distance_to_optimum(outer.anchor), 0.2 * distance_to_optimum(Vector(kParameters)));
}

TEST(OuterTraining, every_rule_brings_several_sites_near_the_common_optimum) {
    for (const OuterRule rule :
         {OuterRule::average, OuterRule::sgd, OuterRule::heavy_ball, OuterRule::nesterov}) {
        std::vector<Inner> sites(4);
        Outer outer{{.rule = rule, .lr = 0.6f, .momentum = 0.5f}};
        for (int round = 0; round < 20; ++round) outer.round(sites, 10, {1, 1, 1, 1});
        EXPECT_LT(distance_to_optimum(outer.anchor), 0.1 * distance_to_optimum(Vector(kParameters)));
        for (const auto& site : sites) EXPECT_EQ(site.theta, outer.anchor) << "all sites are equal";
    }
}

}  // namespace
}  // namespace atl
