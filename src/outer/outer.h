// The outer loop between rounds: what a site contributes, and what the mean of the contributions does to the
// shared parameters. Pure arithmetic on flat fp32 spans of one fragment (or of a rank's share of it).
//
//   Δ_m = θ_outer − θ_m                                    (contribution: old minus new)
//   Δ   = Σ w_m·Δ_m / Σ w_m                                (the exchange, over contributors that arrived)
//   sgd:        θ ← θ − γ·Δ
//   heavy_ball: m ← μ·m + Δ;  θ ← θ − γ·m
//   nesterov:   m ← μ·m + Δ;  θ ← θ − γ·(Δ + μ·m)          (m starts at zero; no dampening)
//   adam:       m ← μ·m + (1 − μ)·Δ;  v ← β₂·v + (1 − β₂)·Δ²;  θ ← θ − γ·m̂ / (√v̂ + ε)   (bias-corrected)
//   θ_m ← θ_m + (1 − α)·(θ − θ_m)                          (α = 0: a plain copy)
//
// Every operation is rounded separately, so all sites get the same bits on every processor.
// Threads: pure functions. Errors: sizes that differ are a CheckError. Nothing here looks at finiteness: the
// round excludes non-finite contributions before they are summed.
// Cost: one pass over memory per call.
// Source: Douillard et al., "DiLoCo" (arXiv 2311.08105); Nesterov momentum in PyTorch's form.
#pragma once

#include <cstdint>
#include <span>

#include "core/ids.h"

namespace atl {

// average: the mean of the sites' parameters, which is SGD with lr 1.
enum class OuterRule { average, sgd, heavy_ball, nesterov, adam };

struct OuterSettings {
    OuterRule rule = OuterRule::nesterov;
    float lr = 0.6f;        // γ, resolved; not used by average
    float momentum = 0.9f;  // μ; not used by average and sgd
    float second_decay = 0.99f;  // β₂, of adam
    float epsilon = 1e-8f;       // ε, of adam
    float alpha = 0.0f;     // share of the local value that survives an apply
};

bool has_momentum(OuterRule rule);
bool has_second_moment(OuterRule rule);

// What an outer step changes beside the anchor. Spans that a rule does not need may be empty.
struct OuterMoments {
    std::span<float> momentum;
    std::span<float> second;
};

// delta ← anchor − local. `delta` may be `local`.
void contribution(std::span<const float> anchor, std::span<const float> local, std::span<float> delta);

// One outer step: anchor and moments from the mean of `round`, the run's first being 0.
void outer_step(const OuterSettings& settings, Round round, std::span<const float> mean_delta,
                std::span<float> anchor, const OuterMoments& moments);

// local ← local + (1 − alpha)·(anchor − local): alpha is the share of the local value that stays.
void mix_into_local(float alpha, std::span<const float> anchor, std::span<float> local);

// What a commit does: outer_step, then mix_into_local. The next Δ is measured from the anchor, never from the mix.
void apply_outer(const OuterSettings& settings, Round round, std::span<const float> mean_delta,
                 std::span<float> anchor, const OuterMoments& moments, std::span<float> local);

// mean ← Σ w_m·Δ_m / Σ w_m, summed in the order given (SiteId order), divided by the weights given. Plain loops:
// the reference that the exchange of packets must equal bit for bit. Weights are the tokens each site trained on;
// equal ones count as 1, so that one site's mean is its own Δ.
struct WeightedDelta {
    std::span<const float> delta;
    double weight = 1;
};
void weighted_mean(std::span<const WeightedDelta> contributions, std::span<float> mean);

// How the contributions come together: as one mean, which owners sum and send, or every contribution at every site.
enum class Combine { mean, gather };

// Packet bytes (framing excluded) that one site sends per fragment and round.
struct EncodedSizes {
    std::int64_t contribution_bytes = 0;        // the whole fragment as a contribution
    std::int64_t owned_contribution_bytes = 0;  // the chunks this site reduces itself, as contributions
    std::int64_t owned_mean_bytes = 0;          // the same chunks as means
};
// Gathered, or 2 sites (direct): (sites − 1) contributions. A mean of 3 or more (owners): contribution − owned +
// (sites − 1)·owned means.
std::int64_t payload_bytes_sent(Combine combine, const EncodedSizes& sizes, int sites);

}  // namespace atl
