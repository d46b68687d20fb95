// Passes over a row of logits, for the kernels of the loss. Only for x_cpu.cpp files.
#pragma once

#include <cmath>

#include "kernels/exponential.h"

namespace atl::kernels::ATOLL_INSTRUCTION_SET {

// NaN is dropped: the exponentials' sum finds it.
template <class T>
T largest_of(const T* values, std::int64_t count, T at_least) {
    Vec<T> largest = broadcast(at_least);
    for_vectors<T>(count, [&](std::int64_t i, std::int64_t lanes) {
        largest = larger(largest, load_first(values + i, lanes, at_least));
    });
    return largest_lane<T>(largest);
}

// Σ exp(value − maximum); the terms are kept in `terms` unless it is null.
template <class T>
T sum_exponentials(const T* values, std::int64_t count, T maximum, T* terms) {
    Vec<T> sum{};
    for_vectors<T>(count, [&](std::int64_t i, std::int64_t lanes) {
        const Vec<T> term =
            exponential<T>(load_first(values + i, lanes, -static_cast<T>(INFINITY)) - maximum);
        if (terms != nullptr) store_first(terms + i, term, lanes);
        sum += term;
    });
    return sum_of_lanes<T>(sum);
}

template <class T>
void scale_values(T* values, std::int64_t count, T factor) {
    for_vectors<T>(count, [&](std::int64_t i, std::int64_t lanes) {
        store_first(values + i, load_first(values + i, lanes) * factor, lanes);
    });
}

}  // namespace atl::kernels::ATOLL_INSTRUCTION_SET
