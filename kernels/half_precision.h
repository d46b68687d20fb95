// fp32 to and from the two 16-bit formats: fp16 (IEEE 754 binary16) and bf16 (the upper half of fp32).
//
// Rounds to nearest even; too large becomes infinite; a NaN stays a (quiet) NaN; subnormals are kept. The same
// bits on every processor. 16-bit values travel as their bit patterns. Single-threaded; spans of one call have
// one length.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/instruction_set.h"

namespace atl::kernels {

void fp16_encode(std::span<const float> values, std::span<std::uint16_t> codes,
                 InstructionSet set = best_instruction_set());
void fp16_decode(std::span<const std::uint16_t> codes, std::span<float> values,
                 InstructionSet set = best_instruction_set());
void bf16_encode(std::span<const float> values, std::span<std::uint16_t> codes,
                 InstructionSet set = best_instruction_set());
void bf16_decode(std::span<const std::uint16_t> codes, std::span<float> values,
                 InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
