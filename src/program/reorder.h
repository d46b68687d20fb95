// A program's ops in another order.
#pragma once

#include <vector>

#include "program/program.h"

namespace atl {

// Every op exactly once (a failed check names the op that isn't). Ops and `after` are renumbered; each group's
// collectives, and sends and receives by peer, are counted in the new order. Whether it means the same is the
// caller's business. Cost: O(ops).
Program reordered(Program program, const std::vector<OpId>& order);

}  // namespace atl
