// Arithmetic of the outer loop on flat fp32 spans: pseudo-gradients, weighted means, the outer optimizer.
//
// All functions give the same bits on every processor and under every instruction set: every operation is
// rounded on its own (no FMA), sums have a fixed order. Single-threaded; spans of one call have one length.
// Outputs may be inputs. Cost: memory bound. Source: Douillard et al., DiLoCo, 2023; Nesterov in PyTorch's form.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/instruction_set.h"

namespace atl::kernels {

// delta = before − after: the pseudo-gradient Δ = θ_outer − θ_local.
void subtract(std::span<const float> before, std::span<const float> after, std::span<float> delta,
              InstructionSet set = best_instruction_set());

// accumulator += weight · values
void add_weighted(std::span<const float> values, float weight, std::span<float> accumulator,
                  InstructionSet set = best_instruction_set());

// values *= factor; with factor 1/W this ends a weighted mean.
void scale(std::span<float> values, float factor, InstructionSet set = best_instruction_set());

// When what is written will be read: soon it stays in the cache, late it goes past it to memory.
enum class ReadAgain { soon, late };

// mean = (Σ weights[k] · inputs[k] in the given order) / divisor, every operation rounded to fp32; of a divisor that is a
// power of two by its reciprocal, which is exact. One pass over arrays of mean.size() each. False if any sum was not
// finite; `mean` is then meaningless.
[[nodiscard]] bool weighted_mean(std::span<const float* const> inputs, std::span<const float> weights, float divisor,
                                 std::span<float> mean, ReadAgain mean_is_read,
                                 InstructionSet set = best_instruction_set());

// target += fraction · (source − target), fraction in [0, 1]; 1 copies.
void interpolate(std::span<const float> source, float fraction, std::span<float> target,
                 InstructionSet set = best_instruction_set());

struct OuterSgd {
    float learning_rate = 0;
    float momentum = 0;  // μ; 0 = plain: θ ← θ − γΔ, `velocity` unused and may be empty
    bool nesterov = true;
};

// m ← μm + Δ; θ ← θ − γ(Δ + μm) with Nesterov, θ ← θ − γm without.
void outer_sgd_step(const OuterSgd& settings, std::span<const float> delta, std::span<float> theta,
                    std::span<float> velocity, InstructionSet set = best_instruction_set());

struct OuterAdam {
    float learning_rate = 0;
    float first_decay = 0.9F;    // β₁
    float second_decay = 0.99F;  // β₂
    float epsilon = 1e-8F;
    std::int64_t step = 1;  // t, from 1: of the bias correction
};

// m ← β₁m + (1 − β₁)Δ; v ← β₂v + (1 − β₂)Δ²; θ ← θ − γ m̂ / (√v̂ + ε) with m̂ = m / (1 − β₁ᵗ) and v̂ = v / (1 − β₂ᵗ).
void outer_adam_step(const OuterAdam& settings, std::span<const float> delta, std::span<float> theta,
                     std::span<float> first, std::span<float> second,
                     InstructionSet set = best_instruction_set());

bool all_finite(std::span<const float> values, InstructionSet set = best_instruction_set());

// Euclidean norm, summed in f64.
double norm(std::span<const float> values, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
