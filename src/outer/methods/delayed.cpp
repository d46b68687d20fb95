// One round late: what round r has come to is exchanged beside the steps of round r + 1 and applied when it ends.
//
//   Δ_r = θ_r − θ_local at the end of round r;  θ_{r+1} = Outer(θ_r, mean of Δ_{r−1});  θ_local ← θ_{r+1}
//
// The link has a whole round's time, and the first exchange carries zeros. The price is quality: round r + 1 begins
// without what round r has learned. The run's last round waits, so that nothing stays behind: it hands over both.
// State: anchor, momentum; the contribution that is kept. Payload: as DiLoCo's.
// Source: Kale et al., "Eager Updates For Overlapped Communication and Computation in DiLoCo" (arXiv 2502.12996), the
// delayed outer gradients that it begins with.
#include <algorithm>

#include "outer/methods/methods.h"

namespace atl {
namespace {

class Delayed final : public OuterMethod {
  public:
    OuterRule rule(double momentum, bool nesterov) const override { return momentum_rule(momentum, nesterov); }
    bool is_a_round_late() const override { return true; }

    void apply(OuterFragment& fragment, const OuterSettings& settings, const OuterResult& result,
               std::span<float> local) const override {
        keep_for_next_round(fragment, result, local);
        outer_step(settings, result.round, result.mean, fragment.anchor(), fragment.moments());
        std::ranges::copy(fragment.anchor(), local.begin());
    }
};

}  // namespace

const OuterMethod& delayed_method() {
    static const Delayed method;
    return method;
}

}  // namespace atl
