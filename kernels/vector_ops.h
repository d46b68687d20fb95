// The small element-wise ops of a step: the sum of two tensors and the gradient of a bias.
//
// T is float or double. Threads: OpenMP of the caller; results don't depend on their number. Memory bound.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels {

template <class T>
struct Add {
    std::int64_t count = 0;
    const T* a = nullptr;
    const T* b = nullptr;
    T* sum = nullptr;  // may be a or b
};

// dbias[c] (+)= Σ_rows dy[row, c]
template <class T>
struct BiasGradient {
    std::int64_t rows = 0;
    std::int64_t channels = 0;
    const T* dy = nullptr;
    T* dbias = nullptr;
    bool accumulate = false;
};

template <class T>
void add(const Add<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void bias_gradient(const BiasGradient<T>& operation, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
