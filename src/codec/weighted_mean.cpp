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
constexpr std::size_t kBlockElements = 2048;

void divide(std::span<float> values, float divisor, kernels::InstructionSet set) {
    int exponent = 0;
    if (std::frexp(divisor, &exponent) == 0.5F) {  // of a power of two the reciprocal is exact
        if (divisor != 1.0F) kernels::scale(values, 1.0F / divisor, set);
    } else {
        for (float& value : values) value /= divisor;
    }
}

}  // namespace

std::optional<std::size_t> weighted_mean(PacketDecoder& decoder, const std::vector<const Packet*>& packets,
                                         const MeanWeights& weights, std::span<float> mean) {
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
    const kernels::InstructionSet set = codec.instruction_set();
    for (std::size_t begin = 0; begin < mean.size(); begin += kBlockElements) {
        const auto block = mean.subspan(begin, std::min(kBlockElements, mean.size() - begin));
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            const float weight = weights.of_contributor[i];
            if (i == 0) {
                codec.decode(bodies[i], begin, block);
                if (weight != 1.0F) kernels::scale(block, weight, set);
            } else {
                codec.decode_add(bodies[i], begin, weight, block);
            }
            if (!kernels::all_finite(block, set)) return i;
        }
        divide(block, weights.total, set);
    }
    return {};
}

}  // namespace atl
