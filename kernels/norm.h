// RMSNorm and LayerNorm over the channels of each row, with an optional residual add in front, and backward.
//
//   rms_norm    y = x · rstd · gamma,          rstd = 1 / sqrt(mean(x²) + epsilon)
//   layer_norm  y = (x − mean) · rstd · gamma + beta, rstd = 1 / sqrt(var(x) + epsilon), var over n
//
// Matrices are row-major [rows, channels]; T is float or double. With `delta` set, x + delta is written to
// `sum` and normalised (sum may be x or delta). Backward: dsum, when set, is added to dx (the gradient that
// reaches the sum by its other path; dx may be dsum or dy).
//
// Threads: OpenMP of the caller, results independent of their number. Cost: memory bound, one pass over each
// matrix. Throws CheckError for missing pointers. Sources: Zhang & Sennrich 2019; Ba et al. 2016.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/instruction_set.h"
#include "kernels/scratch.h"

namespace atl::kernels {

template <class T>
struct RmsNorm {
    std::int64_t rows = 0;
    std::int64_t channels = 0;
    double epsilon = 1e-5;
    const T* x = nullptr;
    const T* delta = nullptr;  // may be null
    const T* gamma = nullptr;  // [channels]
    T* sum = nullptr;          // set exactly when delta is
    T* y = nullptr;
    T* rstd = nullptr;  // [rows]
};

template <class T>
struct RmsNormBackward {
    std::int64_t rows = 0;
    std::int64_t channels = 0;
    const T* dy = nullptr;
    const T* x = nullptr;  // what was normalised
    const T* gamma = nullptr;
    const T* rstd = nullptr;
    const T* dsum = nullptr;  // may be null
    T* dx = nullptr;
    T* dgamma = nullptr;
    bool accumulate = false;       // add to dgamma instead of overwriting it
    std::byte* scratch = nullptr;  // norm_backward_scratch_bytes(channels, sizeof(T))
};

template <class T>
struct LayerNorm {
    std::int64_t rows = 0;
    std::int64_t channels = 0;
    double epsilon = 1e-5;
    const T* x = nullptr;
    const T* delta = nullptr;  // may be null
    const T* gamma = nullptr;
    const T* beta = nullptr;
    T* sum = nullptr;  // set exactly when delta is
    T* y = nullptr;
    T* mean = nullptr;  // [rows]
    T* rstd = nullptr;  // [rows]
};

template <class T>
struct LayerNormBackward {
    std::int64_t rows = 0;
    std::int64_t channels = 0;
    const T* dy = nullptr;
    const T* x = nullptr;
    const T* gamma = nullptr;
    const T* mean = nullptr;
    const T* rstd = nullptr;
    const T* dsum = nullptr;  // may be null
    T* dx = nullptr;
    T* dgamma = nullptr;
    T* dbeta = nullptr;
    bool accumulate = false;       // add to dgamma and dbeta
    std::byte* scratch = nullptr;  // norm_backward_scratch_bytes(channels, sizeof(T))
};

template <class T>
void rms_norm(const RmsNorm<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void rms_norm_backward(const RmsNormBackward<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void layer_norm(const LayerNorm<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void layer_norm_backward(const LayerNormBackward<T>& operation, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
