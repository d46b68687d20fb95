#include "kernels/rope.h"

#include <cmath>

#include "core/check.h"
#include "kernels/dispatch.h"
#include "kernels/rope_direction.h"

namespace atl::kernels {
namespace {

template <class T>
void run(const Rope<T>& operation, T sine_sign, InstructionSet set) {
    ATOLL_CHECK_EQ(operation.head_width % 2, 0);
    for (std::int64_t token = 0; token < operation.tokens; ++token) {
        const std::int32_t position = operation.positions[token];
        ATOLL_CHECK(position >= 0 && position < operation.table_positions,
                    "position {} of token {}, table of {}", position, token, operation.table_positions);
    }
    dispatch(DirectedRope<T>{operation, sine_sign}, set);
}

}  // namespace

template <class T>
void make_rope_table(std::int64_t positions, std::int32_t head_width, double base, std::span<T> table) {
    ATOLL_CHECK_EQ(head_width % 2, 0);
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(table.size()), positions * head_width);
    const std::int32_t half = head_width / 2;
    for (std::int32_t i = 0; i < half; ++i) {
        const double frequency = std::pow(base, -2.0 * i / head_width);
        for (std::int64_t position = 0; position < positions; ++position) {
            const double angle = static_cast<double>(position) * frequency;
            table[position * head_width + i] = static_cast<T>(std::cos(angle));
            table[position * head_width + half + i] = static_cast<T>(std::sin(angle));
        }
    }
}

template <class T>
void rope(const Rope<T>& operation, InstructionSet set) {
    run(operation, T{1}, set);
}

template <class T>
void rope_backward(const Rope<T>& operation, InstructionSet set) {
    run(operation, T{-1}, set);
}

template void make_rope_table(std::int64_t, std::int32_t, double, std::span<float>);
template void make_rope_table(std::int64_t, std::int32_t, double, std::span<double>);
template void rope(const Rope<float>&, InstructionSet);
template void rope(const Rope<double>&, InstructionSet);
template void rope_backward(const Rope<float>&, InstructionSet);
template void rope_backward(const Rope<double>&, InstructionSet);

}  // namespace atl::kernels
