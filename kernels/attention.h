// Causal softmax attention inside each document of a pack, with grouped queries, forward and backward.
//
//   out[t, h] = Σ_s softmax_s(q[t, h] · k[s, g] / sqrt(D)) v[s, g],  s from t's document, s ≤ t, g = h / (Q/K)
//
// A qkv row is q heads, k heads, v heads: [tokens, (heads + 2·kv_heads) · D]. out and dout are
// [tokens, heads · D], lse is [heads, tokens]: the logarithm of each row's sum of exponentials. starts [tokens + 1]
// holds the first token of each document, then `tokens` until the end. T is float or double; a NaN in q, k or v
// reaches every output that depends on it (and perhaps others of its document, never of another).
//
// Scratch: kernels/scratch.h says how much, the caller brings it, nothing is allocated. Threads: up to
// shape.threads of the caller's OpenMP, over (document, key/value head); results don't depend on their number.
// Throws CheckError for shapes or starts that are not as above. Cost: 2·Σ len²·D·heads floating-point
// operations forward, 2.5 times that backward; scores are never stored beyond one block.
// Source: Dao, FlashAttention-2, 2023 (online softmax; backward from lse and Σ dout·out).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/instruction_set.h"
#include "kernels/scratch.h"

namespace atl::kernels {

template <class T>
struct Attention {
    AttentionShape shape;
    const T* qkv = nullptr;
    const std::int32_t* starts = nullptr;
    T* out = nullptr;
    T* lse = nullptr;
    std::byte* scratch = nullptr;  // attention_scratch_bytes(shape, sizeof(T))
};

template <class T>
struct AttentionBackward {
    AttentionShape shape;
    const T* dout = nullptr;
    const T* qkv = nullptr;
    const T* out = nullptr;
    const T* lse = nullptr;
    const std::int32_t* starts = nullptr;
    T* dqkv = nullptr;             // every element is overwritten
    std::byte* scratch = nullptr;  // attention_backward_scratch_bytes(shape, sizeof(T))
};

template <class T>
void attention(const Attention<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void attention_backward(const AttentionBackward<T>& operation, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
