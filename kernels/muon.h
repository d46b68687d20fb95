// The element-wise parts of Muon on one matrix; the products between them are the engine's (src/engine/ops_muon.cpp).
//
//   g = dw · min(1, grad_clip / norm) / tokens                      as for AdamW
//   m ← μ·m + g;  x = g + μ·m                                       (Nesterov)
//   O = the nearest matrix with orthonormal rows or columns, nearly: x / (‖x‖ + ε), then five Newton–Schulz steps
//   w ← w·(1 − lr·decay) − lr·s·O,  s = 0.2·sqrt(max(rows, columns))   as long as a step of AdamW
//
// T is float or double. Threads: OpenMP of the caller; results don't depend on their number or on the instruction set.
// Cost: memory bound. Source: Jordan et al., "Muon" (2024); the scale: Liu et al., "Muon is Scalable for LLM Training"
// (arXiv 2502.16982), section 2.2.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels {

template <class T>
struct MuonMomentum {
    std::int64_t count = 0;
    T gradient_scale = 0;  // of dw
    T momentum = 0;        // μ
    const T* dw = nullptr;
    T* m = nullptr;
    T* x = nullptr;
};

template <class T>
struct MuonUpdate {
    std::int64_t count = 0;
    T keep = 0;       // 1 − lr·decay
    T step_size = 0;  // lr·s
    const T* orthogonal = nullptr;
    T* w = nullptr;
};

template <class T>
struct ScaleBy {
    std::int64_t count = 0;
    T factor = 0;
    T* x = nullptr;
};

template <class T>
void muon_momentum(const MuonMomentum<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void muon_update(const MuonUpdate<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void scale_by(const ScaleBy<T>& operation, InstructionSet set = best_instruction_set());

// s of a matrix.
double muon_scale(std::int64_t rows, std::int64_t columns);

}  // namespace atl::kernels
