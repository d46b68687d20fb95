// What the kernels' tests share: random inputs, the instruction sets to try, errors, finite differences.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/random.h"
#include "kernels/instruction_set.h"

namespace atl::test {

// The same values under every element type: N(0, scale²), rounded to float first.
template <class T>
std::vector<T> normal_values(std::int64_t count, std::uint64_t stream, double scale = 1) {
    const RandomStream random(20, stream);
    std::vector<T> values(count);
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(random.normal(i) * scale);
    return values;
}

inline std::vector<kernels::InstructionSet> supported_sets() {
    using kernels::InstructionSet;
    std::vector<InstructionSet> sets;
    for (const auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
        if (kernels::is_supported(set)) sets.push_back(set);
    }
    return sets;
}

// The largest difference, relative to the largest expected magnitude; NaN anywhere gives infinity.
template <class T>
double largest_error(std::span<const T> actual, std::span<const double> expected) {
    if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
    double error = 0;
    double magnitude = 1e-30;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
        if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
        error = std::max(error, difference);
        magnitude = std::max(magnitude, std::abs(expected[i]));
    }
    return error / magnitude;
}
template <class T>
double largest_error(const std::vector<T>& actual, const std::vector<double>& expected) {
    return largest_error(std::span<const T>(actual), std::span<const double>(expected));
}

// Compares a gradient with central differences of `loss` (a function of x), at up to 60 elements and along one
// random direction through all of them. Tolerances are relative to the largest gradient.
template <class Loss>
void expect_gradient(Loss loss, std::vector<double> x, const std::vector<double>& gradient,
                     double tolerance) {
    constexpr double kStep = 1e-5;
    ASSERT_EQ(x.size(), gradient.size());
    double magnitude = 1e-3;
    for (const double g : gradient) magnitude = std::max(magnitude, std::abs(g));
    const std::size_t stride = std::max<std::size_t>(1, x.size() / 60);
    for (std::size_t i = 0; i < x.size(); i += stride) {
        const double kept = x[i];
        x[i] = kept + kStep;
        const double above = loss(x);
        x[i] = kept - kStep;
        const double below = loss(x);
        x[i] = kept;
        EXPECT_NEAR((above - below) / (2 * kStep), gradient[i], tolerance * magnitude) << "element " << i;
    }
    const std::vector<double> direction = normal_values<double>(x.size(), 99, 1 / std::sqrt(x.size()));
    std::vector<double> above = x;
    std::vector<double> below = x;
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        above[i] += kStep * direction[i];
        below[i] -= kStep * direction[i];
        expected += gradient[i] * direction[i];
    }
    EXPECT_NEAR((loss(above) - loss(below)) / (2 * kStep), expected, tolerance * magnitude)
        << "random direction";
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

}  // namespace atl::test
