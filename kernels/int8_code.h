// Eight-bit codes of fp32 values: 256 uniform bins over mean ± 6 sigma, each decoded to the mean of the values
// that fell into it, so that clipping and rounding leave the sum of a chunk unbiased. The means are exact to about
// 1e-7 of a sigma.
//
//   code = clamp(round((x − mean) / step), −128, 127) + 128,  step = 12·sigma/256,  sigma over n − 1
//
// All functions give the same bits on every processor and under every instruction set: fixed reduction order,
// every operation rounded on its own, round half to even. Single-threaded; nothing is allocated. The spans of a
// call have one length each unless said otherwise. Cost per core: above 3 GB/s (encode) and 4 GB/s (decode) of fp32.
// Source: Prime Intellect, INTELLECT-1 technical report, 2024.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/instruction_set.h"

namespace atl::kernels {

inline constexpr std::size_t kInt8Bins = 256;

struct Moments {
    float mean = 0;
    float sigma = 0;  // 0 for fewer than two values
    bool is_finite() const;
};

// Non-finite when any value is: such a chunk must be refused.
Moments moments(std::span<const float> values, InstructionSet set = best_instruction_set());

// Writes one code per value and the bins' means (0 for an empty bin). `moments` must be finite.
void int8_encode(std::span<const float> values, Moments moments, std::span<std::uint8_t> codes,
                 std::span<float, kInt8Bins> codebook, InstructionSet set = best_instruction_set());

// values[i] = codebook[codes[i]]
void int8_decode(std::span<const std::uint8_t> codes, std::span<const float, kInt8Bins> codebook,
                 std::span<float> values, InstructionSet set = best_instruction_set());

// accumulator[i] += weight · codebook[codes[i]], product and sum each rounded. Weight −1 subtracts what was
// sent: the residual of error feedback.
void int8_decode_add(std::span<const std::uint8_t> codes, std::span<const float, kInt8Bins> codebook,
                     float weight, std::span<float> accumulator, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
