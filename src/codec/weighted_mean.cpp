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

std::optional<std::size_t> weighted_mean(PacketDecoder& decoder, const std::vector<const Packet*>& packets,
                                         const MeanWeights& weights, std::span<float> mean) {
    ATOLL_CHECK_EQ(packets.size(), weights.of_contributor.size());
    ATOLL_CHECK(weights.total > 0, "no contributor has a weight");
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const float weight = weights.of_contributor[i];
        if (i == 0) {
            decoder.decode(*packets[i], mean);
            if (weight != 1.0F) kernels::scale(mean, weight);
        } else {
            decoder.decode_add(*packets[i], weight, mean);
        }
        if (!kernels::all_finite(mean)) return i;
    }
    int exponent = 0;
    if (std::frexp(weights.total, &exponent) == 0.5F) {  // of a power of two the reciprocal is exact
        if (weights.total != 1.0F) kernels::scale(mean, 1.0F / weights.total);
    } else {
        for (float& value : mean) value /= weights.total;
    }
    return {};
}

}  // namespace atl
