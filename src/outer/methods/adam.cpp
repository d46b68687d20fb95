// Adam on the mean pseudo-gradient, its step count being the round's.
//
// State: anchor and two moments. Payload: as DiLoCo's. Source: Reddi et al., "Adaptive Federated Optimization" (ICLR
// 2021), FedAdam, with bias correction.
#include "outer/methods/methods.h"

namespace atl {
namespace {

class AdamOutside final : public OuterMethod {
  public:
    OuterRule rule(double, bool) const override { return OuterRule::adam; }
};

}  // namespace

const OuterMethod& adam_method() {
    static const AdamOutside method;
    return method;
}

}  // namespace atl
