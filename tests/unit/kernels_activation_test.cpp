// SwiGLU and GELU against plain formulas in long double, over all magnitudes; gradients against differences.
#include "kernels/activation.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::InstructionSet;
using test::normal_values;

long double silu(long double x) {
    return x / (1 + std::exp(-x));
}
long double gelu(long double x) {
    return 0.5L * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x)));
}

template <class T>
std::vector<T> swiglu(const std::vector<T>& gate_up, int rows, InstructionSet set) {
    const std::int64_t width = gate_up.size() / rows / 2;
    std::vector<T> act(rows * width);
    kernels::swiglu(kernels::Swiglu<T>{rows, width, gate_up.data(), act.data()}, set);
    return act;
}
template <class T>
std::vector<T> swiglu_backward(const std::vector<T>& dact, const std::vector<T>& gate_up, int rows,
                               InstructionSet set) {
    std::vector<T> dgate_up(gate_up.size());
    kernels::swiglu_backward(kernels::SwigluBackward<T>{rows, static_cast<std::int64_t>(dact.size()) / rows,
                                                        dact.data(), gate_up.data(), dgate_up.data()},
                             set);
    return dgate_up;
}
template <class T>
std::vector<T> gelu(const std::vector<T>& x, InstructionSet set) {
    std::vector<T> y(x.size());
    kernels::gelu(kernels::Gelu<T>{static_cast<std::int64_t>(x.size()), x.data(), y.data()}, set);
    return y;
}
template <class T>
std::vector<T> gelu_backward(const std::vector<T>& dy, const std::vector<T>& x, InstructionSet set) {
    std::vector<T> dx(x.size());
    kernels::gelu_backward(
        kernels::GeluBackward<T>{static_cast<std::int64_t>(x.size()), dy.data(), x.data(), dx.data()}, set);
    return dx;
}

// −30 … 30 in odd steps, and a tail that fills no vector.
template <class T>
std::vector<T> sweep() {
    std::vector<T> x;
    for (int i = -3001; i <= 3001; ++i) x.push_back(static_cast<T>(i * 0.01F));
    return x;
}

TEST(ActivationKernels, silu_has_a_small_relative_error_everywhere) {
    for (const auto set : test::supported_sets()) {
        const auto x = sweep<float>();
        auto gate_up = x;
        gate_up.resize(2 * x.size(), 1.0F);  // up = 1
        const auto act = swiglu(gate_up, 1, set);
        const auto x64 = sweep<double>();
        auto gate_up64 = x64;
        gate_up64.resize(2 * x64.size(), 1.0);
        const auto act64 = swiglu(gate_up64, 1, set);
        for (std::size_t i = 0; i < x.size(); ++i) {
            EXPECT_NEAR(act[i], silu(x[i]), 1e-6 * std::abs(silu(x[i])) + 1e-37) << x[i];
            EXPECT_NEAR(act64[i], silu(x64[i]), 1e-15 * std::abs(silu(x64[i]))) << x64[i];
        }
    }
}

TEST(ActivationKernels, gelu_is_accurate_where_tanh_cancels) {
    for (const auto set : test::supported_sets()) {
        const auto x = sweep<float>();
        const auto y = gelu(x, set);
        for (std::size_t i = 0; i < x.size(); ++i) {
            // Far below zero the argument's own rounding is magnified by its size.
            const double tolerance = x[i] < -3 ? 2e-5 : 1e-6;
            const double expected = static_cast<double>(gelu(static_cast<long double>(x[i])));
            EXPECT_NEAR(y[i], expected, tolerance * std::abs(expected) + 1e-18) << x[i];
        }
        const auto x64 = sweep<double>();
        const auto y64 = gelu(x64, set);
        for (std::size_t i = 0; i < x64.size(); ++i)
            EXPECT_NEAR(y64[i], gelu(static_cast<long double>(x64[i])), 1e-13);
    }
}

TEST(ActivationKernels, backward_equals_finite_differences) {
    for (const int count : {1, 3, 17, 200}) {
        const auto x = normal_values<double>(count, 1, 2);
        const auto dy = normal_values<double>(count, 2);
        const auto gate_up = normal_values<double>(6 * count, 3, 2);
        const auto dact = normal_values<double>(3 * count, 4);
        for (const auto set : test::supported_sets()) {
            SCOPED_TRACE(fmt::format("{} {}", count, name(set)));
            test::expect_gradient([&](const auto& value) { return test::dot(gelu(value, set), dy); }, x,
                                  gelu_backward(dy, x, set), 1e-7);
            test::expect_gradient([&](const auto& value) { return test::dot(swiglu(value, 3, set), dact); },
                                  gate_up, swiglu_backward(dact, gate_up, 3, set), 1e-7);
        }
    }
}

TEST(ActivationKernels, backward_in_float_follows_double) {
    const auto x = normal_values<double>(1003, 5, 3);
    const auto dy = normal_values<double>(1003, 6);
    const auto gate_up = normal_values<double>(2006, 7, 3);
    const auto single = [](const std::vector<double>& values) {
        return std::vector<float>(values.begin(), values.end());
    };
    for (const auto set : test::supported_sets()) {
        EXPECT_LE(test::largest_error(gelu_backward(single(dy), single(x), set), gelu_backward(dy, x, set)),
                  1e-6);
        EXPECT_LE(test::largest_error(swiglu_backward(single(dy), single(gate_up), 1, set),
                                      swiglu_backward(dy, gate_up, 1, set)),
                  1e-6);
    }
}

TEST(ActivationKernels, extremes_saturate_and_nan_stays) {
    for (const auto set : test::supported_sets()) {
        const std::vector<float> x = {-1e30F, -200, 200, 1e18F, 0, NAN, INFINITY};
        const auto y = gelu(x, set);
        EXPECT_EQ(y[0], 0);
        EXPECT_EQ(y[1], 0);
        EXPECT_EQ(y[2], 200);
        EXPECT_EQ(y[3], 1e18F);
        EXPECT_EQ(y[4], 0);
        EXPECT_TRUE(std::isnan(y[5]));
        EXPECT_EQ(y[6], INFINITY);
        const auto act = swiglu(std::vector<float>{-200, 200, NAN, 1, 1, 1}, 1, set);
        EXPECT_NEAR(act[0], 0, 1e-35);
        EXPECT_EQ(act[1], 200);
        EXPECT_TRUE(std::isnan(act[2]));
    }
}

}  // namespace
}  // namespace atl
