// Sums whose order does not depend on the width of vectors: sixteen f64 partial sums, element i goes to sum
// i mod 16, then a fixed tree. Each term is rounded to f64 on its own.
#pragma once

#include <cstdint>

namespace atl::kernels::ATOLL_INSTRUCTION_SET {

inline constexpr int kFixedLanes = 16;

struct FixedLanes {
    double lane[kFixedLanes] = {};

    double sum() const {
        double half[kFixedLanes / 2];
        for (int i = 0; i < kFixedLanes / 2; ++i) half[i] = lane[i] + lane[i + kFixedLanes / 2];
        for (int width = kFixedLanes / 4; width > 0; width /= 2) {
            for (int i = 0; i < width; ++i) half[i] += half[i + width];
        }
        return half[0];
    }
};

// Σ term(x[i])
template <class T, class Term>
double fixed_sum(const T* x, std::int64_t count, Term term) {
    FixedLanes sums;
    std::int64_t i = 0;
    for (; i + kFixedLanes <= count; i += kFixedLanes) {
        for (int lane = 0; lane < kFixedLanes; ++lane)
            sums.lane[lane] += term(static_cast<double>(x[i + lane]));
    }
    const int rest = static_cast<int>(count - i);
    for (int lane = 0; lane < rest; ++lane) sums.lane[lane] += term(static_cast<double>(x[i + lane]));
    return sums.sum();
}

}  // namespace atl::kernels::ATOLL_INSTRUCTION_SET
