// A libtorch tensor over memory that somebody else has placed; it copies nothing and owns nothing.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <type_traits>

#include "layout/box.h"

namespace atl {

template <class T>
at::Tensor tensor_over(const T* data, const Shape& shape) {
    constexpr auto kType = std::is_same_v<T, float> ? at::kFloat : at::kDouble;
    return at::from_blob(const_cast<T*>(data), shape, at::TensorOptions().dtype(kType));
}

}  // namespace atl
