// AdamW with the division by tokens and the global-norm clip folded in, and the sum of squares it needs.
//
//   g = dw · min(1, grad_clip / norm) / tokens,  norm = sqrt(norm2) / tokens   (grad_clip 0: no clipping)
//   w ← w·(1 − lr·decay);  m ← m + (1 − β1)(g − m);  v ← β2·v + (1 − β2)·g²
//   w ← w − lr/(1 − β1^step) · m / (sqrt(v)/sqrt(1 − β2^step) + ε)
//
// T is float or double; constants are computed once in double. Threads: OpenMP of the caller; results don't
// depend on their number or on the instruction set. Cost: memory bound.
// Source: Loshchilov & Hutter, Decoupled Weight Decay Regularization, ICLR 2019.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels {

struct AdamwSettings {
    double learning_rate = 0;
    double step = 1;    // counted from 1
    double tokens = 1;  // tokens with a loss in the global batch
    double norm2 = 0;   // square_sum of all summed gradients
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double weight_decay = 0;
    double grad_clip = 0;
};

template <class T>
struct Adamw {
    std::int64_t count = 0;
    AdamwSettings settings;
    const T* dw = nullptr;
    T* w = nullptr;
    T* m = nullptr;
    T* v = nullptr;
};

// False, and nothing written, when norm2 is not finite or there are no tokens.
template <class T>
bool adamw(const Adamw<T>& operation, InstructionSet set = best_instruction_set());

template <class T>
struct SquareSum {
    std::int64_t count = 0;
    const T* x = nullptr;
};

// In f64, in an order fixed by `count` alone.
template <class T>
double square_sum(const SquareSum<T>& operation, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
