#include "outer/outer.h"

#include <algorithm>

#include "core/check.h"
#include "kernels/outer_step.h"

namespace atl {

bool has_momentum(OuterRule rule) {
    return rule == OuterRule::heavy_ball || rule == OuterRule::nesterov || rule == OuterRule::adam;
}

bool has_second_moment(OuterRule rule) {
    return rule == OuterRule::adam;
}

void contribution(std::span<const float> anchor, std::span<const float> local, std::span<float> delta) {
    ATOLL_CHECK_EQ(anchor.size(), local.size());
    ATOLL_CHECK_EQ(anchor.size(), delta.size());
    kernels::subtract(anchor, local, delta);
}

void outer_step(const OuterSettings& settings, Round round, std::span<const float> mean_delta,
                std::span<float> anchor, const OuterMoments& moments) {
    if (settings.rule == OuterRule::adam) {
        kernels::outer_adam_step({.learning_rate = settings.lr,
                                  .first_decay = settings.momentum,
                                  .second_decay = settings.second_decay,
                                  .epsilon = settings.epsilon,
                                  .step = round.value() + 1},
                                 mean_delta, anchor, moments.momentum, moments.second);
        return;
    }
    const bool average = settings.rule == OuterRule::average;
    const bool with_momentum = has_momentum(settings.rule);
    ATOLL_CHECK_EQ(mean_delta.size(), anchor.size());
    if (with_momentum) ATOLL_CHECK_EQ(moments.momentum.size(), anchor.size());
    kernels::outer_sgd_step({.learning_rate = average ? 1.0f : settings.lr,
                             .momentum = with_momentum ? settings.momentum : 0.0f,
                             .nesterov = settings.rule == OuterRule::nesterov},
                            mean_delta, anchor, moments.momentum);
}

void mix_into_local(float alpha, std::span<const float> anchor, std::span<float> local) {
    ATOLL_CHECK_EQ(anchor.size(), local.size());
    kernels::interpolate(anchor, 1 - alpha, local);
}

void apply_outer(const OuterSettings& settings, Round round, std::span<const float> mean_delta,
                 std::span<float> anchor, const OuterMoments& moments, std::span<float> local) {
    outer_step(settings, round, mean_delta, anchor, moments);
    mix_into_local(settings.alpha, anchor, local);
}

void weighted_mean(std::span<const WeightedDelta> contributions, std::span<float> mean) {
    ATOLL_CHECK(!contributions.empty());
    const double first_weight = contributions.front().weight;
    const bool equal = std::ranges::all_of(contributions, [&](const WeightedDelta& contribution) {
        return contribution.weight == first_weight;
    });
    float total = 0;
    for (std::size_t k = 0; k < contributions.size(); ++k) {
        const auto& [delta, weight] = contributions[k];
        ATOLL_CHECK_EQ(delta.size(), mean.size());
        ATOLL_CHECK(weight > 0, "weight {}", weight);
        const float factor = equal ? 1.0f : static_cast<float>(weight);
        for (std::size_t i = 0; i < mean.size(); ++i)
            mean[i] = k == 0 ? factor * delta[i] : mean[i] + factor * delta[i];
        total += factor;
    }
    for (float& value : mean) value /= total;
}

std::int64_t payload_bytes_sent(Combine combine, const EncodedSizes& sizes, int sites) {
    ATOLL_CHECK(sites > 0, "{} sites", sites);
    if (sites <= 2 || combine == Combine::gather) return (sites - 1) * sizes.contribution_bytes;
    return sizes.contribution_bytes - sizes.owned_contribution_bytes + (sites - 1) * sizes.owned_mean_bytes;
}

}  // namespace atl
