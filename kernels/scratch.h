// How much scratch the kernels that need some take, as pure functions of shapes: the planner places it, the
// kernels never allocate. Scratch has no content before or after a call and is aligned to 64 bytes.
#pragma once

#include <cstdint>

namespace atl::kernels {

inline constexpr std::int64_t kScratchAlignmentBytes = 64;

struct AttentionShape {
    std::int64_t tokens = 0;  // of all documents together
    std::int32_t heads = 0;   // a multiple of kv_heads
    std::int32_t kv_heads = 0;
    std::int32_t head_width = 0;  // at most kLargestHeadWidth
    std::int32_t threads = 1;     // the most threads the kernel may use; scratch grows with it

    std::int64_t row_width() const { return std::int64_t{heads + 2 * kv_heads} * head_width; }
};

inline constexpr std::int32_t kLargestHeadWidth = 256;

// Blocking of attention: queries and keys are worked off in blocks of these sizes. All are multiples of every
// instruction set's register tile.
inline constexpr std::int64_t kQueryBlock = 48;
inline constexpr std::int64_t kForwardKeyBlock = 192;
inline constexpr std::int64_t kBackwardKeyBlock = 96;
inline constexpr std::int64_t kScorePadding = 16;  // keeps rows of scores off each other's cache sets

constexpr std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
    return (count + multiple - 1) / multiple * multiple;
}

// Elements from one packed row to the next.
constexpr std::int64_t attention_pitch(std::int32_t head_width) {
    return head_width <= 64 ? 64 : head_width <= 128 ? 128 : 256;
}

// Packed keys and values of one key/value head, and one block of queries, results and scores.
constexpr std::int64_t attention_scratch_elements_per_thread(const AttentionShape& shape) {
    const std::int64_t keys = round_up(shape.tokens, kForwardKeyBlock);
    const std::int64_t pitch = attention_pitch(shape.head_width);
    return 2 * keys * pitch + 2 * kQueryBlock * pitch + kQueryBlock * (kForwardKeyBlock + kScorePadding) +
           2 * kQueryBlock;
}

// Keys three ways, values, their two gradients; one block of queries, output gradients, query gradients and two
// of scores.
constexpr std::int64_t attention_backward_scratch_elements_per_thread(const AttentionShape& shape) {
    const std::int64_t keys = round_up(shape.tokens, kForwardKeyBlock);
    const std::int64_t pitch = attention_pitch(shape.head_width);
    return 5 * keys * pitch + 3 * kQueryBlock * pitch +
           2 * kQueryBlock * (kBackwardKeyBlock + kScorePadding) + 2 * kQueryBlock;
}

constexpr std::int64_t attention_scratch_bytes(const AttentionShape& shape, std::int64_t element_bytes) {
    return shape.threads *
           round_up(attention_scratch_elements_per_thread(shape) * element_bytes, kScratchAlignmentBytes);
}

constexpr std::int64_t attention_backward_scratch_bytes(const AttentionShape& shape,
                                                        std::int64_t element_bytes) {
    return shape.threads * round_up(attention_backward_scratch_elements_per_thread(shape) * element_bytes,
                                    kScratchAlignmentBytes);
}

// Rows are summed in this many fixed pieces whatever the number of threads, so that results don't depend on it.
inline constexpr std::int64_t kRowPieces = 16;

// rms_norm_backward and layer_norm_backward.
constexpr std::int64_t norm_backward_scratch_bytes(std::int64_t channels, std::int64_t element_bytes) {
    return round_up(2 * kRowPieces * channels * element_bytes, kScratchAlignmentBytes);
}

}  // namespace atl::kernels
