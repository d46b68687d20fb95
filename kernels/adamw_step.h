// What adamw.cpp hands to adamw_cpu.cpp.
#pragma once

#include <cstdint>

namespace atl::kernels {

// One step with every constant computed; see adamw.h for the formula.
template <class T>
struct AdamwStep {
    std::int64_t count = 0;
    T gradient_scale = 0;
    T keep = 0;  // 1 − lr · decay
    T one_minus_beta1 = 0;
    T beta2 = 0;
    T one_minus_beta2 = 0;
    T step_size = 0;        // lr / (1 − β1^step)
    T root_correction = 0;  // sqrt(1 − β2^step)
    T epsilon = 0;
    const T* dw = nullptr;
    T* w = nullptr;
    T* m = nullptr;
    T* v = nullptr;
};

template <class T>
struct SquareSumInto {
    std::int64_t count = 0;
    const T* x = nullptr;
    double* sum = nullptr;
};

}  // namespace atl::kernels
