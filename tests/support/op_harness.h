// Runs one op through the executor, on copies of libtorch tensors, for comparison with autograd.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "engine/executor.h"

namespace atl::test {

struct OpWrite {
    Shape shape;
    std::optional<std::size_t> in_place_of;  // index of the read whose bytes it shares
    std::optional<at::Tensor> initial;       // content before the op, for ops that accumulate
    bool is_sum = false;                     // f64 whatever the op's dtype
};

struct OpCase {
    OpKind kind = OpKind::add;
    OpAttributes attributes = NoAttributes{};
    std::vector<at::Tensor> reads;  // float, double or int32
    std::vector<OpWrite> writes;
    at::ScalarType dtype = at::kDouble;
};

// What the op wrote, in order. Fails a check if libtorch allocated anything meanwhile.
std::vector<at::Tensor> run_op(const OpCase& op_case);

// max |a − b| / max |b|, in fp64.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace atl::test
