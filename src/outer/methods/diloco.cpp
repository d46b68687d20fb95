// DiLoCo: Nesterov momentum on the mean pseudo-gradient; without momentum SGD, without Nesterov's form heavy ball.
//
//   m ← μ·m + Δ;  θ ← θ − γ·(Δ + μ·m);  θ_local ← θ + α·(θ_local − θ)
//
// In fragments at staggered steps, each exchanged beside τ inner steps, it is Streaming DiLoCo: when a fragment starts
// and is applied is the plan's business (rounds/fragment_schedule.h).
// State: anchor, momentum. Payload: one contribution (two sites), 2(M − 1)/M of one from three sites on.
// Source: Douillard et al., "DiLoCo" (arXiv 2311.08105), algorithm 1.
#include "outer/methods/methods.h"

namespace atl {
namespace {

class Diloco final : public OuterMethod {
  public:
    OuterRule rule(double momentum, bool nesterov) const override { return momentum_rule(momentum, nesterov); }
};

}  // namespace

OuterRule momentum_rule(double momentum, bool nesterov) {
    if (momentum == 0) return OuterRule::sgd;
    return nesterov ? OuterRule::nesterov : OuterRule::heavy_ball;
}

const OuterMethod& diloco_method() {
    static const Diloco method;
    return method;
}

}  // namespace atl
