#include "codec/weighted_mean.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "kernels/outer_step.h"

namespace atl {

MeanWeights mean_weights(std::span<const double> weights) {
    MeanWeights result;
    const bool equal = std::ranges::all_of(weights, [&](double weight) { return weight == weights.front(); });
    for (const double weight : weights) {
        result.of_contributor.push_back(equal ? 1.0F : static_cast<float>(weight));
        result.total += result.of_contributor.back();
    }
    return result;
}

namespace {

// Small enough that a block of every contribution and of the sum stays in the first-level cache.
constexpr std::size_t kMeanBlockElements = 2048;

void divide(std::span<float> values, float divisor, kernels::InstructionSet set) {
    int exponent = 0;
    if (std::frexp(divisor, &exponent) == 0.5F) {  // of a power of two the reciprocal is exact
        if (divisor != 1.0F) kernels::scale(values, 1.0F / divisor, set);
    } else {
        for (float& value : values) value /= divisor;
    }
}

void add(const Codec& codec, const Body& body, std::size_t begin, float weight, bool is_first,
         std::span<float> sum) {
    if (!is_first) return codec.decode_add(body, begin, weight, sum);
    codec.decode(body, begin, sum);
    if (weight != 1.0F) kernels::scale(sum, weight, codec.instruction_set());
}

// The bodies' values where all of them lie ready to be summed; else none.
std::vector<const float*> plain_values(const Codec& codec, const std::vector<Body>& bodies) {
    std::vector<const float*> values;
    for (const Body& body : bodies) {
        const auto plain = codec.plain_values(body);
        if (plain.empty()) return {};
        values.push_back(plain.data());
    }
    return values;
}

// The same bits as the sum over blocks below makes.
bool sum_in_one_pass(const Codec& codec, const std::vector<Body>& bodies, const MeanWeights& weights,
                     std::span<float> mean, kernels::ReadAgain mean_is_read) {
    const auto values = plain_values(codec, bodies);
    return !values.empty() && kernels::weighted_mean(values, weights.of_contributor, weights.total, mean,
                                                     mean_is_read, codec.instruction_set());
}

std::size_t find_culprit(const Codec& codec, const std::vector<Body>& bodies, const MeanWeights& weights,
                         std::size_t begin, std::span<float> block) {
    for (std::size_t i = 0; i < bodies.size(); ++i) {
        add(codec, bodies[i], begin, weights.of_contributor[i], i == 0, block);
        if (!kernels::all_finite(block, codec.instruction_set())) return i;
    }
    ATOLL_CHECK(false, "a sum that was not finite is so the second time");
    return bodies.size();
}

}  // namespace

std::optional<std::size_t> weighted_mean(PacketDecoder& decoder, const std::vector<const Packet*>& packets,
                                         const MeanWeights& weights, std::span<float> mean,
                                         kernels::ReadAgain mean_is_read) {
    ATOLL_CHECK_EQ(packets.size(), weights.of_contributor.size());
    ATOLL_CHECK(weights.total > 0, "no contributor has a weight");
    std::vector<std::vector<std::byte>> scratch(packets.size());
    std::vector<Body> bodies;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        ATOLL_CHECK_EQ(packets[i]->elements, static_cast<std::int64_t>(mean.size()));
        const auto body = decoder.plain_body(*packets[i], scratch[i]);
        ATOLL_CHECK(body.has_value(), "a packet that was never verified");
        bodies.push_back({*body, packets[i]->elements});
    }
    const Codec& codec = decoder.codec();
    if (sum_in_one_pass(codec, bodies, weights, mean, mean_is_read)) return {};
    for (std::size_t begin = 0; begin < mean.size(); begin += kMeanBlockElements) {
        const auto block = mean.subspan(begin, std::min(kMeanBlockElements, mean.size() - begin));
        for (std::size_t i = 0; i < bodies.size(); ++i)
            add(codec, bodies[i], begin, weights.of_contributor[i], i == 0, block);
        // What is not finite stays so whatever is added to it.
        if (!kernels::all_finite(block, codec.instruction_set()))
            return find_culprit(codec, bodies, weights, begin, block);
        divide(block, weights.total, codec.instruction_set());
    }
    return {};
}

}  // namespace atl
