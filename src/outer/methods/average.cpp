// Averaging: the anchor becomes the mean of the sites' parameters, which is SGD on the mean pseudo-gradient with γ = 1.
//
// State: the anchor. Payload: as DiLoCo's. Source: McMahan et al., "Communication-Efficient Learning of Deep Networks
// from Decentralized Data" (AISTATS 2017), algorithm 1.
#include "outer/methods/methods.h"

namespace atl {
namespace {

class Average final : public OuterMethod {
  public:
    OuterRule rule(double, bool) const override { return OuterRule::average; }
};

}  // namespace

const OuterMethod& average_method() {
    static const Average method;
    return method;
}

}  // namespace atl
