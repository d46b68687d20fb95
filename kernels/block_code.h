// Codes of 1, 4 or 8 bits with one scale per block: int8, int4, E3M0 and sign.
//
//   int8  block of 512, scale = largest magnitude: value = scale·q/127, q = round(127x/scale) in −127…127
//   int4  block of 64,  scale = largest magnitude: value = scale·q/7, q = round(7x/scale) in −7…7
//   e3m0  block of 256, scale = largest magnitude: value = ±scale·2^(e−7) for e in 1…7, 0 for e = 0, the nearest
//   sign  block of 256, scale = mean magnitude:    value = ±scale
//
// A scale is stored as bf16: to nearest even for sign, else rounded up, so that nothing is clipped and the largest
// magnitude of a block has the largest code. A scale below 2^-119 becomes 0, and the block with it: no product with a
// scale or its reciprocal leaves the range of normal fp32.
//
// Shapes: values [n] fp32; scales [2·blocks(n)] bytes, little-endian; codes [code_bytes(n)] bytes, block after block.
// A block of m values takes s = ceil(m/p) bytes, p = 8/bits values in each: byte j holds the values j, j+s, …,
// j+(p−1)s from its low bits up. Any alignment, no overlap.
// The same bits under every instruction set: each operation is rounded on its own, sums have a fixed order.
// Single-threaded; nothing is allocated. Cost per core with AVX2: above 4 GB/s of fp32 (encode), 6 GB/s (decode, add).
// Sources: E3M0 from Douillard et al., "Streaming DiLoCo" (arXiv 2501.18512); the layout is ours.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/instruction_set.h"

namespace atl::kernels {

enum class BlockFormat : std::uint8_t { int8, int4, e3m0, sign };

constexpr std::int64_t block_elements(BlockFormat format) {
    if (format == BlockFormat::int8) return 512;
    return format == BlockFormat::int4 ? 64 : 256;
}
constexpr std::int64_t values_per_byte(BlockFormat format) {
    if (format == BlockFormat::int8) return 1;
    return format == BlockFormat::sign ? 8 : 2;
}
constexpr std::int64_t block_count(BlockFormat format, std::int64_t elements) {
    return (elements + block_elements(format) - 1) / block_elements(format);
}
constexpr std::int64_t code_bytes(BlockFormat format, std::int64_t elements) {
    return (elements + values_per_byte(format) - 1) /
           values_per_byte(format);  // whole blocks fill their bytes
}

inline constexpr std::uint16_t kLeastScale = 0x0400;  // bf16 2^-119
// From this bf16 pattern (2^127) on a scale is not allowed: 8/7 of it would not be finite.
inline constexpr std::uint16_t kForbiddenScale = 0x7F00;

// False if a value is not finite or a block's scale is not allowed; what was written is then meaningless.
[[nodiscard]] bool block_encode(BlockFormat format, std::span<const float> values,
                                std::span<std::uint8_t> scales, std::span<std::uint8_t> codes,
                                InstructionSet set = best_instruction_set());

// Codes and scales of `elements` values, and which of them are wanted.
struct BlockCodes {
    BlockFormat format;
    std::int64_t elements = 0;
    std::span<const std::uint8_t> scales, codes;
    std::int64_t first = 0;
};
// values[i] = x[first + i]
void block_decode(const BlockCodes& from, std::span<float> values,
                  InstructionSet set = best_instruction_set());
// accumulator[i] += weight · x[first + i], product and sum each rounded
void block_decode_add(const BlockCodes& from, float weight, std::span<float> accumulator,
                      InstructionSet set = best_instruction_set());

// Whether every scale is allowed: then all codes decode to finite values.
bool block_scales_allowed(std::span<const std::uint8_t> scales);

}  // namespace atl::kernels
