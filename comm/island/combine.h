// How two members' values become one: the sum or the maximum of each pair of elements, in f32 or f64.
#pragma once

#include "core/buffer_view.h"

namespace atl {

enum class Combination : std::uint8_t { sum, maximum };

// result = came (+) own, `bytes` of each. `result` may be `own`, or apart from both.
void combine(Combination combination, DType dtype, std::byte* result, const std::byte* came,
             const std::byte* own, std::int64_t bytes);

}  // namespace atl
