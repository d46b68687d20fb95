// Positions in the input `scalars` of an optimizer's op (program/op.h).
#pragma once

#include <cstddef>

namespace atl {

enum OptimizerScalar : std::size_t { kLearningRate = 0, kStep = 1, kTokens = 2 };

}  // namespace atl
