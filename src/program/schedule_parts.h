// What the serial schedule and the expansion of tables share.
#pragma once

#include <vector>

#include "program/step_ops.h"

namespace atl {

// Input and weight gradients of one layer as they were emitted, but that weight gradients stand behind the next
// collective of the layer, if there is one: they need not wait for it, and what stands behind it must.
std::vector<OpId> backward_ops(const StepOps& step, std::int32_t layer, std::int32_t micro_batch);

// Puts every reduction right behind the last op of `order` that writes what it reduces.
std::vector<OpId> insert_reductions(const StepOps& step, const std::vector<OpId>& order);

}  // namespace atl
