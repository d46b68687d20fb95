// The nearest matrix with orthonormal rows or columns, nearly, by Newton–Schulz steps; the products are libtorch's.
//
// Each step works on the shorter side: with A = X·Xᵀ (or XᵀX for a tall matrix) X ← a·X + (b·A + c·A²)·X. Singular values
// that begin between 0.01 and 1 end between 0.68 and 1.14; the direction of small ones is kept, which is the point.
//
// Memory: `elements` of T that somebody else owns; nothing is allocated. Cost: 5 · (4·n²·m + 2·n³) flops for n ≤ m.
// Source of the coefficients: Jordan et al., "Muon" (2024).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/tensor_over.h"

namespace atl {

template <class T>
class NewtonSchulz {
  public:
    static std::int64_t elements(std::int64_t rows, std::int64_t columns) {
        const std::int64_t side = std::min(rows, columns);
        return 2 * rows * columns + 2 * side * side;
    }

    // The first rows · columns of `memory` are the matrix, of norm 1.
    NewtonSchulz(T* memory, std::int64_t rows, std::int64_t columns)
        : count_(rows * columns), memory_(memory), tall_(rows > columns) {
        const std::int64_t side = std::min(rows, columns);
        x_ = {tensor_over(memory, {rows, columns}), tensor_over(memory + count_, {rows, columns})};
        square_ = tensor_over(memory + 2 * count_, {side, side});
        polynomial_ = tensor_over(memory + 2 * count_ + side * side, {side, side});
    }

    // Where the result is.
    const T* run() {
        std::size_t from = 0;
        for (int step = 0; step < kSteps; ++step, from = 1 - from) {
            const at::Tensor& now = x_[from];
            at::Tensor& next = x_[1 - from];
            if (tall_)
                at::mm_out(square_, now.t(), now);
            else
                at::mm_out(square_, now, now.t());
            at::addmm_out(polynomial_, square_, square_, square_, kCubic, kQuintic);
            if (tall_)
                at::addmm_out(next, now, now, polynomial_, kLinear);
            else
                at::addmm_out(next, now, polynomial_, now, kLinear);
        }
        return memory_ + (static_cast<std::int64_t>(from) * count_);
    }

  private:
    static constexpr int kSteps = 5;
    static constexpr double kLinear = 3.4445, kCubic = -4.7750, kQuintic = 2.0315;

    std::int64_t count_ = 0;
    T* memory_ = nullptr;
    bool tall_ = false;
    std::array<at::Tensor, 2> x_;  // the matrix goes back and forth between them
    at::Tensor square_, polynomial_;
};

}  // namespace atl
