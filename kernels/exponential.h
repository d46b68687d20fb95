// exp and the logistic function of vectors.
//
// exp: 2^n · e^r with n = round(x / ln 2), r in ±ln(2)/2. Error about 1 unit in the last place. Results below the
// smallest normal number are 0; infinite from about 88.4 (float) and 709.4 (double); NaN stays NaN.
// Sources: Cephes (float coefficients); the Taylor series (double, remainder below 1e-17).
#pragma once

#include "kernels/simd.h"

namespace atl::kernels::ATOLL_INSTRUCTION_SET {

template <class T>
struct ExponentialConstants;

template <>
struct ExponentialConstants<float> {
    static constexpr float kLargest = 89.0F;
    static constexpr float kSmallest = -87.33654F;
    static constexpr float kLn2High = 0.693359375F;
    static constexpr float kLn2Low = -2.12194440e-4F;
    static constexpr float kRounder = 12582912.0F;  // 1.5 · 2^23: adding it rounds to an integer
    static constexpr int kMantissaBits = 23;
    static constexpr std::uint32_t kExponentBias = 127;
    // (e^r − 1 − r) / r², highest power first.
    static constexpr float kPolynomial[] = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                            4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};
};

template <>
struct ExponentialConstants<double> {
    static constexpr double kLargest = 710.0;
    static constexpr double kSmallest = -708.396418532264;
    static constexpr double kLn2High = 6.93145751953125e-1;
    static constexpr double kLn2Low = 1.42860682030941723212e-6;
    static constexpr double kRounder = 6755399441055744.0;  // 1.5 · 2^52
    static constexpr int kMantissaBits = 52;
    static constexpr std::uint64_t kExponentBias = 1023;
    static constexpr double kPolynomial[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
                                             1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
                                             1.0 / 120,        1.0 / 24,        1.0 / 6,        1.0 / 2};
};

template <class T>
inline Vec<T> exponential(Vec<T> x) {
    using Constants = ExponentialConstants<T>;
    typedef Bits<T> BitVector __attribute__((vector_size(kVectorBytes)));
    const T inverse_ln2 = static_cast<T>(1.44269504088896340736);
    const Vec<T> rounder = broadcast(Constants::kRounder);
    const Vec<T> largest = broadcast(Constants::kLargest);

    const Vec<T> bounded = x > largest ? largest : x;
    const Vec<T> shifted = fma(bounded, broadcast(inverse_ln2), rounder);
    const Vec<T> power = shifted - rounder;
    Vec<T> rest = fma(power, broadcast(-Constants::kLn2High), bounded);
    rest = fma(power, broadcast(-Constants::kLn2Low), rest);

    Vec<T> polynomial = broadcast(Constants::kPolynomial[0]);
    constexpr int kTerms = sizeof(Constants::kPolynomial) / sizeof(T);
#pragma GCC unroll 12
    for (int term = 1; term < kTerms; ++term) {
        polynomial = fma(polynomial, rest, broadcast(Constants::kPolynomial[term]));
    }
    const Vec<T> mantissa = fma(polynomial, rest * rest, rest) + T{1};

    // The low bits of `shifted` are n; multiplying (not adding to the exponent) keeps NaN a NaN.
    const BitVector exponent = (BitVector)shifted - (BitVector)rounder + Constants::kExponentBias;
    const Vec<T> scale = (Vec<T>)(exponent << Constants::kMantissaBits);
    return x < Constants::kSmallest ? Vec<T>{} : mantissa * scale;
}

// open = 1 / (1 + e^−x) and closed = 1 − open, both with a small relative error: 1 − open would cancel for large x.
template <class T>
struct Logistic {
    Vec<T> open;
    Vec<T> closed;
};
template <class T>
inline Logistic<T> logistic(Vec<T> x) {
    // Bounded so that e · open is never ∞ · 0; at e^80 open is as good as 0.
    const Vec<T> exponent = -x > T{80} ? broadcast(T{80}) : -x;
    const Vec<T> e = exponential<T>(exponent);
    const Vec<T> open = T{1} / (T{1} + e);
    return {open, e * open};
}

}  // namespace atl::kernels::ATOLL_INSTRUCTION_SET
