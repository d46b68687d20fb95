// Eager updates: a site's own contribution counts at once, those of the others a round later.
//
// As published, each site steps parameters and momentum of its own with its fresh contribution and the stale ones of the
// others: mean of round r − 1 + s·(Δ_r − Δ_{r−1}), s its share. The outer step is linear, so this is the same as a common
// state that the late means drive, plus the step that the site's own contributions make ahead of it:
//
//   θ, m    ← Outer(θ, m, mean of Δ_{r−1})                  equal on all sites
//   u       ← μ·u + Δ_r                                     the site's own
//   start_s ← θ − γ·s·(Δ_r + μ·u)                           where round r + 1 begins here; SGD and heavy ball alike
//
// What was applied at once leaves again when the mean that holds it comes, whatever the codec made of it, so sites are
// never more than one round's contributions apart. With one site it is DiLoCo, to the last bit.
// The run's last round waits and hands over what was kept and what is new.
// State: anchor, momentum; own momentum, start, and the contribution that is kept. Payload: as DiLoCo's.
// Source: Kale et al., "Eager Updates For Overlapped Communication and Computation in DiLoCo" (arXiv 2502.12996),
// section 3.
#include <algorithm>

#include "outer/methods/methods.h"

namespace atl {
namespace {

class Eager final : public OuterMethod {
  public:
    OuterRule rule(double momentum, bool nesterov) const override { return momentum_rule(momentum, nesterov); }
    bool is_a_round_late() const override { return true; }
    bool equal_on_all_sites() const override { return false; }

    OuterBuffers buffers(OuterRule rule) const override {
        OuterBuffers buffers = OuterMethod::buffers(rule);
        buffers.own_start = true;
        buffers.own_momentum = has_momentum(rule);
        return buffers;
    }

    void apply(OuterFragment& fragment, const OuterSettings& settings, const OuterResult& result,
               std::span<float> local) const override {
        keep_for_next_round(fragment, result, local);
        outer_step(settings, result.round, result.mean, fragment.anchor(), fragment.moments());
        fragment.return_to_anchor();
        if (fragment.pending().empty()) {
            std::ranges::fill(fragment.own_momentum(), 0.0F);
        } else {
            OuterSettings own = settings;
            own.lr *= result.share;
            outer_step(own, result.round, fragment.pending(), fragment.start(),
                       {.momentum = fragment.own_momentum()});
        }
        std::ranges::copy(fragment.start(), local.begin());
    }
};

}  // namespace

const OuterMethod& eager_method() {
    static const Eager method;
    return method;
}

}  // namespace atl
