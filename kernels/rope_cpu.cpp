// Rotary position embedding of the query and key heads of each row.
#include "kernels/rope.h"

#include "kernels/dispatch.h"
#include "kernels/parallel.h"
#include "kernels/rope_direction.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

template <class T>
void rotate_head(T* head, const T* angles, std::int64_t half, T sine_sign) {
    for_vectors<T>(half, [&](std::int64_t i, std::int64_t lanes) {
        const Vec<T> first = load_first(head + i, lanes);
        const Vec<T> second = load_first(head + half + i, lanes);
        const Vec<T> cosine = load_first(angles + i, lanes);
        const Vec<T> sine = load_first(angles + half + i, lanes) * sine_sign;
        store_first(head + i, first * cosine - second * sine, lanes);
        store_first(head + half + i, second * cosine + first * sine, lanes);
    });
}

template <class T>
void rotate(const DirectedRope<T>& directed) {
    const Rope<T>& op = directed.rope;
    const std::int64_t row_width = std::int64_t{op.heads + 2 * op.kv_heads} * op.head_width;
    parallel_ranges(op.tokens * row_width, row_width, [&](Range range) {
        for (std::int64_t token = range.begin / row_width; token * row_width < range.end; ++token) {
            const T* angles = op.table + op.positions[token] * std::int64_t{op.head_width};
            for (std::int32_t head = 0; head < op.heads + op.kv_heads; ++head) {
                rotate_head(op.qkv + token * row_width + head * op.head_width, angles, op.head_width / 2,
                            directed.sine_sign);
            }
        }
    });
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const DirectedRope<float>& op) {
    ATOLL_INSTRUCTION_SET::rotate(op);
}
template <>
void run_variant<kInstructionSet>(const DirectedRope<double>& op) {
    ATOLL_INSTRUCTION_SET::rotate(op);
}

}  // namespace atl::kernels
