// The largest values of each tile of 4096, by magnitude, with two bits each and packed indices.
//
// A tile of m values keeps k = ceil(kept·m/4096) of them; of equal magnitudes those with the lowest indices. The kept
// fall into two classes, up to the mean of their magnitudes and above it; each decodes to the mean magnitude of its
// class, rounded to bf16, with its own sign. All others decode to 0.
//
// Shapes: values [n] fp32; records [top_k_bytes(n)] bytes, tile after tile:
//   u16 bf16 of the lower class, u16 bf16 of the upper class,
//   ceil(2k/8) bytes of codes, four in a byte from its low bits up: bit 0 upper class, bit 1 sign,
//   ceil(bk/8) bytes of indices in ascending order, b = top_k_index_bits(m) each, from the low bits up.
// Any alignment, no overlap. The same bits under every instruction set. Single-threaded; nothing is allocated; 40 KiB
// of stack.
// Cost per core with AVX2: above 0.5 GB/s of fp32 (encode).
// Source: Sarfi et al., SparseLoCo (arXiv 2508.15706); two classes of magnitude per tile are ours.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "kernels/instruction_set.h"

namespace atl::kernels {

inline constexpr std::int64_t kTopKTile = 4096;

constexpr std::int64_t top_k_kept(std::int64_t kept, std::int64_t tile_elements) {
    return (kept * tile_elements + kTopKTile - 1) / kTopKTile;
}
constexpr std::int64_t top_k_index_bits(std::int64_t tile_elements) {
    return std::bit_width(static_cast<std::uint64_t>(tile_elements - 1));
}
// The record of one tile of 1 to 4096 values.
constexpr std::int64_t top_k_tile_bytes(std::int64_t kept, std::int64_t tile_elements) {
    const std::int64_t k = top_k_kept(kept, tile_elements);
    return 4 + (2 * k + 7) / 8 + (k * top_k_index_bits(tile_elements) + 7) / 8;
}
constexpr std::int64_t top_k_bytes(std::int64_t kept, std::int64_t elements) {
    const std::int64_t rest = elements % kTopKTile;
    return elements / kTopKTile * top_k_tile_bytes(kept, kTopKTile) +
           (rest > 0 ? top_k_tile_bytes(kept, rest) : 0);
}

// `kept` is 1 to 4096. False if a value is not finite or a mean rounds beyond bf16; the records are then meaningless.
[[nodiscard]] bool top_k_encode(std::int64_t kept, std::span<const float> values,
                                std::span<std::uint8_t> records, InstructionSet set = best_instruction_set());

// Records of `elements` values, and which of them are wanted.
struct TopKRecords {
    std::int64_t kept = 0;
    std::int64_t elements = 0;
    std::span<const std::uint8_t> records;
    std::int64_t first = 0;
};
// values[i] = x[first + i]. Indices of no tile are passed over.
void top_k_decode(const TopKRecords& from, std::span<float> values);
// accumulator[i] += weight · x[first + i], product and sum each rounded; where nothing was kept it stays as it is.
void top_k_decode_add(const TopKRecords& from, float weight, std::span<float> accumulator);

// Whether they are records an encoder could have made: finite means, indices that ascend within their tile.
bool top_k_valid(const TopKRecords& records);

}  // namespace atl::kernels
