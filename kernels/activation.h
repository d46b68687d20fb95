// SwiGLU and GELU, forward and backward.
//
//   swiglu  act = silu(gate) · up, silu(g) = g / (1 + exp(−g)); a gate_up row is gate[F], then up[F]
//   gelu    y = x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
//
// T is float or double. Outputs may be the inputs of the same shape (dgate_up may be gate_up, dx may be x or dy).
// Error: ≤ 1e-6 relative in float. Threads: OpenMP of the caller. Cost: memory bound.
// Sources: Shazeer 2020; Hendrycks & Gimpel 2016.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels {

template <class T>
struct Swiglu {
    std::int64_t rows = 0;
    std::int64_t width = 0;      // F
    const T* gate_up = nullptr;  // [rows, 2F]
    T* act = nullptr;            // [rows, F]
};

template <class T>
struct SwigluBackward {
    std::int64_t rows = 0;
    std::int64_t width = 0;
    const T* dact = nullptr;
    const T* gate_up = nullptr;
    T* dgate_up = nullptr;
};

template <class T>
struct Gelu {
    std::int64_t count = 0;
    const T* x = nullptr;
    T* y = nullptr;
};

template <class T>
struct GeluBackward {
    std::int64_t count = 0;
    const T* dy = nullptr;
    const T* x = nullptr;
    T* dx = nullptr;
};

template <class T>
void swiglu(const Swiglu<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void swiglu_backward(const SwigluBackward<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void gelu(const Gelu<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void gelu_backward(const GeluBackward<T>& operation, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
