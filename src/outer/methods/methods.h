// The methods there are, each in a file of its own. Others ask for them by name (outer/method.h).
#pragma once

#include "outer/method.h"

namespace atl {

const OuterMethod& diloco_method();
const OuterMethod& average_method();
const OuterMethod& adam_method();
const OuterMethod& sparse_loco_method();
const OuterMethod& delayed_method();
const OuterMethod& eager_method();

// SGD, heavy ball or Nesterov: DiLoCo's rule, which others share.
OuterRule momentum_rule(double momentum, bool nesterov);

}  // namespace atl
