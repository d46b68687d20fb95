// The weighted mean of contributions: (Σ in the given order of w·x) / Σ w, every operation rounded to fp32, so
// that whoever computes it, and in whatever order packets came, gets the same bits.
//
// Equal weights count as 1: the sum is then of the values themselves, and one site's mean is its own Δ.
// Threads: any. Cost: one pass per contribution over a chunk that stays in the cache, two more to check and divide; of
// fp32 bodies one pass over all of them together.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "codec/packet.h"
#include "kernels/outer_step.h"

namespace atl {

struct MeanWeights {
    std::vector<float> of_contributor;
    float total = 0;
};
MeanWeights mean_weights(std::span<const double> weights);

// `packets`, verified unless sum_verifies, in the order of the weights. Gives the place of the first contributor whose
// addition made the sum leave the range of fp32, if one did; `mean` is then meaningless.
std::optional<std::size_t> weighted_mean(PacketDecoder& decoder, const std::vector<const Packet*>& packets,
                                         const MeanWeights& weights, std::span<float> mean,
                                         kernels::ReadAgain mean_is_read = kernels::ReadAgain::late);

}  // namespace atl
