#include "outer/outer.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace atl {

OuterRule outer_rule(bool average, double momentum, bool nesterov) {
    if (average) return OuterRule::average;
    if (momentum == 0) return OuterRule::sgd;
    return nesterov ? OuterRule::nesterov : OuterRule::heavy_ball;
}

bool has_momentum(OuterRule rule) {
    return rule == OuterRule::heavy_ball || rule == OuterRule::nesterov;
}

double auto_outer_lr(int sites) {
    ATOLL_CHECK(sites > 0, "{} sites", sites);
    const double octaves_above_4 = std::clamp(std::log2(sites / 4.0), 0.0, 1.0);
    return 0.6 + 0.2 * octaves_above_4;
}

void contribution(std::span<const float> anchor, std::span<const float> local, std::span<float> delta) {
    ATOLL_CHECK_EQ(anchor.size(), local.size());
    ATOLL_CHECK_EQ(anchor.size(), delta.size());
    for (std::size_t i = 0; i < anchor.size(); ++i) delta[i] = anchor[i] - local[i];
}

void outer_step(const OuterSettings& settings, std::span<const float> mean_delta, std::span<float> anchor,
                std::span<float> momentum) {
    const float lr = settings.rule == OuterRule::average ? 1.0f : settings.lr;
    const float mu = settings.momentum;
    ATOLL_CHECK_EQ(mean_delta.size(), anchor.size());
    if (!has_momentum(settings.rule)) {
        for (std::size_t i = 0; i < anchor.size(); ++i) anchor[i] -= lr * mean_delta[i];
        return;
    }
    ATOLL_CHECK_EQ(momentum.size(), anchor.size());
    const bool nesterov = settings.rule == OuterRule::nesterov;
    for (std::size_t i = 0; i < anchor.size(); ++i) {
        momentum[i] = mu * momentum[i] + mean_delta[i];
        const float direction = nesterov ? mean_delta[i] + mu * momentum[i] : momentum[i];
        anchor[i] -= lr * direction;
    }
}

void mix_into_local(float alpha, std::span<const float> anchor, std::span<float> local) {
    ATOLL_CHECK_EQ(anchor.size(), local.size());
    if (alpha == 0) {
        std::copy(anchor.begin(), anchor.end(), local.begin());
        return;
    }
    const float beta = 1 - alpha;
    for (std::size_t i = 0; i < local.size(); ++i) local[i] = alpha * local[i] + beta * anchor[i];
}

void apply_outer(const OuterSettings& settings, std::span<const float> mean_delta, std::span<float> anchor,
                 std::span<float> momentum, std::span<float> local) {
    outer_step(settings, mean_delta, anchor, momentum);
    mix_into_local(settings.alpha, anchor, local);
}

bool equal_on_all_sites(OuterRule rule) {
    switch (rule) {
        case OuterRule::average:
        case OuterRule::sgd:
        case OuterRule::heavy_ball:
        case OuterRule::nesterov:
            return true;
    }
    ATOLL_CHECK(false, "rule {}", static_cast<int>(rule));
    return false;
}

void weighted_mean(std::span<const WeightedDelta> contributions, std::span<float> mean) {
    ATOLL_CHECK(!contributions.empty());
    std::fill(mean.begin(), mean.end(), 0.0f);
    float weights = 0;
    for (const auto& [delta, weight] : contributions) {
        ATOLL_CHECK_EQ(delta.size(), mean.size());
        ATOLL_CHECK(weight > 0, "weight {}", weight);
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += weight * delta[i];
        weights += weight;
    }
    for (float& value : mean) value /= weights;
}

std::int64_t payload_bytes_sent(const EncodedSizes& sizes, int sites) {
    ATOLL_CHECK(sites > 0, "{} sites", sites);
    if (sites == 1) return 0;
    if (sites == 2) return sizes.contribution_bytes;
    return sizes.contribution_bytes - sizes.owned_contribution_bytes + (sites - 1) * sizes.owned_mean_bytes;
}

}  // namespace atl
