// The mean that every site must get alike: hand-worked cases, order, weights, what leaves the range of fp32.
#include "codec/weighted_mean.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/random.h"

namespace atl {
namespace {

const Codec& identity() {
    return codec_from_name("identity");
}

std::vector<float> mean_of(const std::vector<std::vector<float>>& contributions,
                           const std::vector<double>& weights,
                           std::optional<std::size_t>* culprit = nullptr) {
    std::vector<Packet> packets;
    for (const auto& values : contributions) {
        packets.push_back(PacketEncoder(identity(), false).encode(values).value());
    }
    std::vector<const Packet*> pointers;
    for (const Packet& packet : packets) pointers.push_back(&packet);
    std::vector<float> mean(contributions.front().size());
    PacketDecoder decoder(identity());
    const auto place = weighted_mean(decoder, pointers, mean_weights(weights), mean);
    if (culprit != nullptr) *culprit = place;
    return mean;
}

TEST(WeightedMean, weights_one_and_three_on_four_and_zero_give_one) {
    EXPECT_EQ(mean_of({{4.0F}, {0.0F}}, {1, 3}), (std::vector{1.0F}));
}

TEST(WeightedMean, the_divisor_is_the_sum_of_the_weights_that_came_not_their_number) {
    EXPECT_EQ(mean_of({{6.0F}, {3.0F}}, {2, 4}), (std::vector{4.0F}));
    EXPECT_EQ(mean_of({{9.0F}, {3.0F}, {3.0F}}, {5, 5, 5}), (std::vector{5.0F}));
}

TEST(WeightedMean, one_contributor_of_any_weight_is_its_own_mean_to_the_bit) {
    const std::vector<float> values = {0.1F, -3.3e-20F, 1e30F, -0.0F};
    for (const double weight : {1.0, 3.0, 50.0, 0.7}) {
        const auto mean = mean_of({values}, {weight});
        EXPECT_EQ(std::memcmp(mean.data(), values.data(), 4 * sizeof(float)), 0) << weight;
    }
}

TEST(WeightedMean, the_sum_runs_in_the_given_order) {
    // In fp32 (1 + 2^-24) + 2^-24 is 1, and 2^-24 + 2^-24 + 1 is not.
    const float tiny = 0x1.0p-24F;
    const auto one_first = mean_of({{1.0F}, {tiny}, {tiny}, {0.0F}}, {1, 1, 1, 1});
    const auto one_last = mean_of({{tiny}, {tiny}, {1.0F}, {0.0F}}, {1, 1, 1, 1});
    EXPECT_EQ(one_first.front(), 0.25F);
    EXPECT_EQ(one_last.front(), 0.25F * (1.0F + 0x1.0p-23F));
}

TEST(WeightedMean, division_is_a_division_also_where_the_reciprocal_is_not_exact) {
    for (const float value : {1.0F, 5.0F, 7.0F, 1e-3F, 11.0F}) {
        const auto mean = mean_of({{value}, {0.0F}, {0.0F}}, {1, 1, 1});
        volatile const float expected = value / 3.0F;
        EXPECT_EQ(mean.front(), expected) << value;
    }
}

// Values that can be read where they lie are summed in one pass over all of them, others block by block.
TEST(WeightedMean, where_the_bytes_lie_changes_no_bit) {
    constexpr std::size_t kElements = 5001;
    const RandomStream random(1, "weighted mean");
    for (const auto& weights : {std::vector{1.0, 1.0}, std::vector{1.0, 1.0, 1.0}, std::vector{3.0, 7.5, 2.0}}) {
        std::vector<Packet> aligned;
        std::vector<Packet> shifted;
        std::vector<std::vector<std::byte>> bytes;
        for (std::size_t site = 0; site < weights.size(); ++site) {
            std::vector<float> values(kElements);
            for (std::size_t i = 0; i < kElements; ++i)
                values[i] = static_cast<float>(random.normal(site * kElements + i));
            aligned.push_back(PacketEncoder(identity(), false).encode(values).value());
            shifted.push_back(aligned.back());
            auto& copy = bytes.emplace_back(aligned.back().body.size() + 1);
            std::ranges::copy(aligned.back().body, copy.begin() + 1);
            shifted.back().body = std::span(copy).subspan(1);
        }
        std::vector<std::vector<float>> means;
        for (const auto* packets : {&aligned, &shifted}) {
            std::vector<const Packet*> pointers;
            for (const Packet& packet : *packets) pointers.push_back(&packet);
            PacketDecoder decoder(identity());
            EXPECT_FALSE(weighted_mean(decoder, pointers, mean_weights(weights), means.emplace_back(kElements)));
        }
        EXPECT_EQ(means[0], means[1]);
    }
}

TEST(WeightedMean, whoever_makes_the_sum_leave_the_range_is_named) {
    const float large = std::numeric_limits<float>::max();
    std::optional<std::size_t> culprit;
    mean_of({{1.0F}, {large}, {large}}, {1, 1, 1}, &culprit);
    EXPECT_EQ(culprit, 2u);
    mean_of({{large}, {1.0F}}, {3, 1}, &culprit);
    EXPECT_EQ(culprit, 0u);
    mean_of({{large}, {1.0F}}, {1, 1}, &culprit);
    EXPECT_EQ(culprit, std::nullopt);
}

}  // namespace
}  // namespace atl
