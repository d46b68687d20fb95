// SparseLoCo: every site sends the largest values of each chunk, and what it does not send waits in its residual.
//
//   e ← β·e + Δ;  q = C(e);  e ← e − q;  θ ← θ − γ·Σ w·q / Σ w      (the mean over all contributors, not over senders)
//
// Error feedback stands in for the outer momentum. Codes are so small that every site gets every contribution.
// State: anchor; the residual, which is the codec's. Payload: (M − 1) contributions.
// Source: Sarfi et al., "SparseLoCo" (arXiv 2508.15706), algorithm 1.
#include "outer/methods/methods.h"

namespace atl {
namespace {

class SparseLoco final : public OuterMethod {
  public:
    OuterRule rule(double, bool) const override { return OuterRule::sgd; }
    Combine combine() const override { return Combine::gather; }
};

}  // namespace

const OuterMethod& sparse_loco_method() {
    static const SparseLoco method;
    return method;
}

}  // namespace atl
