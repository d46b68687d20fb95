// AdamW, sums of squares, bias gradients, sums: against the formulas in double, for odd sizes and thread counts.
#include <omp.h>

#include "kernels/adamw.h"
#include "kernels/vector_ops.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::AdamwSettings;
using kernels::InstructionSet;
using test::normal_values;

template <class T>
struct Weights {
    std::vector<T> w, m, v;
    bool operator==(const Weights&) const = default;
};

template <class T>
Weights<T> initial(int count) {
    Weights<T> weights{normal_values<T>(count, 1), normal_values<T>(count, 2), normal_values<T>(count, 3)};
    for (T& value : weights.v) value = value * value;
    return weights;
}

template <class T>
bool step(Weights<T>& weights, const std::vector<T>& dw, const AdamwSettings& settings, InstructionSet set) {
    return kernels::adamw(kernels::Adamw<T>{static_cast<std::int64_t>(dw.size()), settings, dw.data(),
                                            weights.w.data(), weights.m.data(), weights.v.data()},
                          set);
}

// The published algorithm, one number at a time.
void reference_step(Weights<double>& weights, const std::vector<double>& dw, const AdamwSettings& s) {
    const double norm = std::sqrt(s.norm2) / s.tokens;
    const double clip = s.grad_clip > 0 ? std::min(1.0, s.grad_clip / norm) : 1.0;
    for (std::size_t i = 0; i < dw.size(); ++i) {
        const double g = dw[i] * clip / s.tokens;
        double& w = weights.w[i];
        double& m = weights.m[i];
        double& v = weights.v[i];
        w -= s.learning_rate * s.weight_decay * w;
        m = s.beta1 * m + (1 - s.beta1) * g;
        v = s.beta2 * v + (1 - s.beta2) * g * g;
        const double first = m / (1 - std::pow(s.beta1, s.step));
        const double second = v / (1 - std::pow(s.beta2, s.step));
        w -= s.learning_rate * first / (std::sqrt(second) + s.epsilon);
    }
}

TEST(AdamwKernel, equals_the_published_algorithm_with_clipping_and_decay) {
    for (const int count : {1, 3, 17, 1000, 9001}) {
        for (const double clip : {0.0, 0.5, 1e9}) {
            const auto dw = normal_values<double>(count, 4, 10);
            const AdamwSettings settings{.learning_rate = 0.01,
                                         .step = 3,
                                         .tokens = 8,
                                         .norm2 = test::dot(dw, dw),
                                         .weight_decay = 0.1,
                                         .grad_clip = clip};
            auto expected = initial<double>(count);
            reference_step(expected, dw, settings);
            for (const auto set : test::supported_sets()) {
                auto in_double = initial<double>(count);
                ASSERT_TRUE(step(in_double, dw, settings, set));
                EXPECT_LE(test::largest_error(in_double.w, expected.w), 1e-14);
                EXPECT_LE(test::largest_error(in_double.m, expected.m), 1e-14);
                EXPECT_LE(test::largest_error(in_double.v, expected.v), 1e-14);
                auto in_float = initial<float>(count);
                ASSERT_TRUE(step(in_float, std::vector<float>(dw.begin(), dw.end()), settings, set));
                EXPECT_LE(test::largest_error(in_float.w, expected.w), 1e-6);
                EXPECT_LE(test::largest_error(in_float.v, expected.v), 1e-6);
            }
        }
    }
}

TEST(AdamwKernel, gives_the_same_bits_under_every_instruction_set_and_number_of_threads) {
    const auto dw = normal_values<float>(20011, 5);
    const AdamwSettings settings{
        .learning_rate = 0.01, .step = 1, .tokens = 3, .norm2 = 1, .weight_decay = 0.1};
    auto expected = initial<float>(20011);
    step(expected, dw, settings, InstructionSet::baseline);
    const int usual_threads = omp_get_max_threads();
    for (const int threads : {1, 3}) {
        omp_set_num_threads(threads);
        for (const auto set : test::supported_sets()) {
            auto actual = initial<float>(20011);
            step(actual, dw, settings, set);
            EXPECT_EQ(actual, expected) << name(set);
        }
    }
    omp_set_num_threads(usual_threads);
}

TEST(AdamwKernel, writes_nothing_when_the_norm_is_not_finite_or_no_token_has_a_loss) {
    const auto before = initial<float>(20);
    const auto dw = normal_values<float>(20, 6);
    for (const auto& settings : {AdamwSettings{.learning_rate = 1, .norm2 = NAN},
                                 AdamwSettings{.learning_rate = 1, .norm2 = INFINITY},
                                 AdamwSettings{.learning_rate = 1, .tokens = 0, .norm2 = 1}}) {
        auto weights = before;
        EXPECT_FALSE(step(weights, dw, settings, kernels::best_instruction_set()));
        EXPECT_EQ(weights, before);
    }
}

template <class T>
double square_sum(const std::vector<T>& x, InstructionSet set) {
    return kernels::square_sum(kernels::SquareSum<T>{static_cast<std::int64_t>(x.size()), x.data()}, set);
}

TEST(SquareSumKernel, is_exact_to_f64_and_the_same_bits_whatever_runs_it) {
    for (const int count : {0, 1, 15, 16, 17, 1023, 100003}) {
        const auto x = normal_values<float>(count, 7);
        double expected = 0;
        for (const float value : x) expected += static_cast<double>(value) * value;
        const double actual = square_sum(x, InstructionSet::baseline);
        EXPECT_NEAR(actual, expected, 1e-13 * expected);
        const int usual_threads = omp_get_max_threads();
        for (const int threads : {1, 3}) {
            omp_set_num_threads(threads);
            for (const auto set : test::supported_sets()) EXPECT_EQ(square_sum(x, set), actual) << name(set);
        }
        omp_set_num_threads(usual_threads);
    }
}

TEST(SquareSumKernel, neither_overflows_in_float_nor_hides_a_nan) {
    EXPECT_NEAR(square_sum(std::vector<float>(20, 1e30F), kernels::best_instruction_set()) / 2e61, 1, 1e-7);
    std::vector<float> x(100, 1.0F);
    x[99] = NAN;
    EXPECT_TRUE(std::isnan(square_sum(x, kernels::best_instruction_set())));
}

TEST(BiasGradientKernel, sums_columns_over_or_onto_what_was_there) {
    for (const auto& [rows, channels] : {std::pair{1, 1}, {3, 17}, {200, 64}, {65, 300}}) {
        const auto dy = normal_values<double>(rows * channels, 8);
        std::vector<double> expected(channels);
        for (int i = 0; i < rows * channels; ++i) expected[i % channels] += dy[i];
        const std::vector<float> dy32(dy.begin(), dy.end());
        for (const auto set : test::supported_sets()) {
            std::vector<float> over(channels, 1.0F);
            std::vector<double> onto(channels, 1.0);
            kernels::bias_gradient(
                kernels::BiasGradient<float>{rows, channels, dy32.data(), over.data(), false}, set);
            kernels::bias_gradient(
                kernels::BiasGradient<double>{rows, channels, dy.data(), onto.data(), true}, set);
            EXPECT_LE(test::largest_error(over, expected), 1e-6);
            for (double& value : onto) value -= 1;
            EXPECT_LE(test::largest_error(onto, expected), 1e-13);
        }
    }
}

TEST(AddKernel, adds_every_element_also_in_place) {
    for (const int count : {1, 3, 17, 5003}) {
        const auto a = normal_values<float>(count, 9);
        const auto b = normal_values<float>(count, 10);
        for (const auto set : test::supported_sets()) {
            auto sum = a;
            kernels::add(kernels::Add<float>{count, sum.data(), b.data(), sum.data()}, set);
            for (int i = 0; i < count; ++i) EXPECT_EQ(sum[i], a[i] + b[i]);
        }
    }
}

}  // namespace
}  // namespace atl
