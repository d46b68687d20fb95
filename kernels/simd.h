// Vectors of the instruction set this file is compiled for: arithmetic by the compiler's vector extension, and
// what it lacks (fma, reductions, transposition) here.
//
// Only for x_cpu.cpp files. Everything lives in a namespace named after the instruction set, so that the linker
// never merges code for one processor with code for another.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <utility>

#include "kernels/instruction_set.h"

namespace atl::kernels::ATOLL_INSTRUCTION_SET {

inline constexpr InstructionSet kInstructionSet = InstructionSet::ATOLL_INSTRUCTION_SET;

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kTileRows = 12;  // of the register tile of matrix products: 12 x 2 of 32 registers
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kTileRows = 6;  // 6 x 2 of 16 registers
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kTileRows = 6;
#endif

template <class T>
struct VectorTypes {
    using Lane = T;
    typedef T Vector __attribute__((vector_size(kVectorBytes)));
    typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vec = typename VectorTypes<T>::Vector;

template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// The unsigned integer that has a floating-point type's bits.
template <class T>
struct BitsOf;
template <>
struct BitsOf<float> {
    using type = std::uint32_t;
};
template <>
struct BitsOf<double> {
    using type = std::uint64_t;
};
template <class T>
using Bits = typename BitsOf<T>::type;

template <class T>
inline Vec<T> load(const T* from) {
    return *reinterpret_cast<const typename VectorTypes<T>::Unaligned*>(from);
}
template <class T>
inline void store(T* to, Vec<T> value) {
    *reinterpret_cast<typename VectorTypes<T>::Unaligned*>(to) = value;
}
template <class T>
inline Vec<T> broadcast(T value) {
    return value - Vec<T>{};  // x − 0 keeps every bit of x, −0 and NaN too
}

// To memory and not into the cache; `to` is a multiple of a vector's size. Others may read it after a fence.
inline void store_past_cache(float* to, Vec<float> value) {
#if defined(__AVX512F__)
    _mm512_stream_ps(to, value);
#elif defined(__AVX2__)
    _mm256_stream_ps(to, value);
#else
    _mm_stream_ps(to, value);
#endif
}

// The first `count` lanes; the others become `fill` or stay unwritten.
template <class T>
inline Vec<T> load_first(const T* from, std::int64_t count, T fill = 0) {
    if (count == kLanes<T>) return load(from);
    Vec<T> value = broadcast(fill);
    for (std::int64_t lane = 0; lane < count; ++lane) value[lane] = from[lane];
    return value;
}
template <class T>
inline void store_first(T* to, Vec<T> value, std::int64_t count) {
    if (count == kLanes<T>) return store(to, value);
    for (std::int64_t lane = 0; lane < count; ++lane) to[lane] = value[lane];
}

// body(offset, lanes) over [0, count) in whole vectors, then the rest.
template <class T, class Body>
[[gnu::always_inline]] inline void for_vectors(std::int64_t count, Body body) {
    std::int64_t offset = 0;
    for (; offset + kLanes<T> <= count; offset += kLanes<T>) body(offset, std::int64_t{kLanes<T>});
    if (offset < count) body(offset, count - offset);
}

// The same in several places at once, far apart: the processor fetches ahead only to the end of a page, and so waits for
// memory half as long where it is in several pages. In no order that matters to `body`; for what is not in the cache.
template <class T, int kPlaces, class Body>
[[gnu::always_inline]] inline void for_vectors_apart(std::int64_t count, Body body) {
    const std::int64_t part = count / (kPlaces * kLanes<T>) * kLanes<T>;
    for (std::int64_t offset = 0; offset < part; offset += kLanes<T>) {
        for (int place = 0; place < kPlaces; ++place) body(place * part + offset, std::int64_t{kLanes<T>});
    }
    const std::int64_t rest = kPlaces * part;
    for_vectors<T>(count - rest, [&](std::int64_t offset, std::int64_t lanes) { body(rest + offset, lanes); });
}

// a·b + c; rounded once where the processor has FMA.
#if defined(__AVX512F__)
inline Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
    return _mm512_fmadd_ps(a, b, c);
}
inline Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
    return _mm512_fmadd_pd(a, b, c);
}
#elif defined(__FMA__)
inline Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
    return _mm256_fmadd_ps(a, b, c);
}
inline Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
    return _mm256_fmadd_pd(a, b, c);
}
#else
inline Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
    return a * b + c;
}
inline Vec<double> fma(Vec<double> a, Vec<double> b, Vec<double> c) {
    return a * b + c;
}
#endif

// The larger of each lane; a NaN in b is dropped, a NaN in a stays.
template <class V>
inline V larger(V a, V b) {
    return a < b ? b : a;
}

namespace detail {

// Lane l of the result is lane l ^ Distance.
template <class T, int Distance, int... Lane>
inline Vec<T> exchange_lanes(Vec<T> value, std::integer_sequence<int, Lane...>) {
    return __builtin_shufflevector(value, value, (Lane ^ Distance)...);
}

template <class T, int Distance, class Combine>
inline T reduce(Vec<T> value, Combine combine) {
    if constexpr (Distance == 0) {
        return value[0];
    } else {
        const auto lanes = std::make_integer_sequence<int, kLanes<T>>();
        return reduce<T, Distance / 2>(combine(value, exchange_lanes<T, Distance>(value, lanes)), combine);
    }
}

// Swaps the off-diagonal quarters of each 2·Distance square that rows a and b are part of.
template <class T, int Distance, int... Lane>
inline void exchange_blocks(Vec<T>& a, Vec<T>& b, std::integer_sequence<int, Lane...>) {
    const Vec<T> upper =
        __builtin_shufflevector(a, b, ((Lane & Distance) ? kLanes<T> + Lane - Distance : Lane)...);
    const Vec<T> lower =
        __builtin_shufflevector(a, b, ((Lane & Distance) ? kLanes<T> + Lane : Lane + Distance)...);
    a = upper;
    b = lower;
}

template <class T, int Distance>
inline void transpose_stage(Vec<T>* rows) {
    if constexpr (Distance > 0) {
#pragma GCC unroll 16
        for (int row = 0; row < kLanes<T>; ++row) {
            if ((row & Distance) == 0) {
                exchange_blocks<T, Distance>(rows[row], rows[row + Distance],
                                             std::make_integer_sequence<int, kLanes<T>>());
            }
        }
        transpose_stage<T, Distance / 2>(rows);
    }
}

}  // namespace detail

template <class T>
inline T sum_of_lanes(Vec<T> value) {
    return detail::reduce<T, kLanes<T> / 2>(value, [](Vec<T> a, Vec<T> b) { return a + b; });
}
template <class T>
inline T largest_lane(Vec<T> value) {
    return detail::reduce<T, kLanes<T> / 2>(value, [](Vec<T> a, Vec<T> b) { return larger(a, b); });
}

// Transposes a square of kLanes rows in place.
template <class T>
inline void transpose(Vec<T>* rows) {
    detail::transpose_stage<T, kLanes<T> / 2>(rows);
}

}  // namespace atl::kernels::ATOLL_INSTRUCTION_SET
