// Rotary position embedding on packed qkv rows, in place: the two halves of each query and key head rotate
// against each other by the angle position · base^(−2i/D) (the Llama convention; Su et al., RoFormer, 2021).
//
// A qkv row is [heads + 2·kv_heads, head_width]: q heads, k heads, v heads; values stay as they are. The table
// holds cosines, then sines, of each position: [positions, D/2 + D/2]. T is float or double.
//
// Threads: OpenMP of the caller over rows. Cost: memory bound.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/instruction_set.h"

namespace atl::kernels {

// Computed in double whatever T is. table.size() = positions · head_width.
template <class T>
void make_rope_table(std::int64_t positions, std::int32_t head_width, double base, std::span<T> table);

template <class T>
struct Rope {
    std::int64_t tokens = 0;
    std::int32_t heads = 0;
    std::int32_t kv_heads = 0;
    std::int32_t head_width = 0;              // even
    T* qkv = nullptr;                         // [tokens, (heads + 2·kv_heads) · head_width]
    const std::int32_t* positions = nullptr;  // [tokens]
    const T* table = nullptr;                 // [table_positions, head_width]
    std::int64_t table_positions = 0;         // every position must be below it
};

template <class T>
void rope(const Rope<T>& operation, InstructionSet set = best_instruction_set());
// The inverse rotation: the gradient's way back. `qkv` is dqkv.
template <class T>
void rope_backward(const Rope<T>& operation, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
