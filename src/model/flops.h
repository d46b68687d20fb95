// Floating-point operations of a model, for utilization figures: matrix products and attention, a multiply-add
// counts two; norms, activations and the embedding's look-up count nothing.
//
// Attention is counted as causal over whole sequences of `context` tokens: a query sees (context + 1) / 2 keys on
// average. Backward counts twice forward; what attention recomputes there is not counted.
#pragma once

#include "model/model_shape.h"

namespace atl {

double forward_flops_per_token(const ModelShape& shape, std::int64_t context);
double backward_flops_per_token(const ModelShape& shape, std::int64_t context);

}  // namespace atl
