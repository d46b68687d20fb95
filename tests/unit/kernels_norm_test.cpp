// RMSNorm, LayerNorm and rotary embedding against plain loops and finite differences, odd sizes, accumulation,
// threads.
#include <omp.h>

#include <tuple>

#include "core/check.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::InstructionSet;
using test::normal_values;

const std::vector<std::pair<int, int>> kSizes = {{1, 1}, {3, 17}, {17, 3}, {40, 64}, {5, 129}, {2, 1031}};

template <class T>
struct Normed {
    std::vector<T> sum, y, mean, rstd;
};

template <class T>
struct Inputs {
    int rows, channels;
    std::vector<T> x, delta, gamma, beta;
};

template <class T>
Inputs<T> inputs(int rows, int channels) {
    return {rows,
            channels,
            normal_values<T>(rows * channels, 1, 2),
            normal_values<T>(rows * channels, 2),
            normal_values<T>(channels, 3),
            normal_values<T>(channels, 4)};
}

template <class T>
Normed<T> empty_result(const Inputs<T>& in) {
    return {std::vector<T>(in.x.size()), std::vector<T>(in.x.size()), std::vector<T>(in.rows),
            std::vector<T>(in.rows)};
}

template <class T>
Normed<T> rms(const Inputs<T>& in, bool add, InstructionSet set) {
    Normed<T> out = empty_result(in);
    kernels::rms_norm(
        kernels::RmsNorm<T>{in.rows, in.channels, 1e-5, in.x.data(), add ? in.delta.data() : nullptr,
                            in.gamma.data(), add ? out.sum.data() : nullptr, out.y.data(), out.rstd.data()},
        set);
    return out;
}

template <class T>
Normed<T> layer(const Inputs<T>& in, bool add, InstructionSet set) {
    Normed<T> out = empty_result(in);
    kernels::layer_norm(
        kernels::LayerNorm<T>{in.rows, in.channels, 1e-5, in.x.data(), add ? in.delta.data() : nullptr,
                              in.gamma.data(), in.beta.data(), add ? out.sum.data() : nullptr, out.y.data(),
                              out.mean.data(), out.rstd.data()},
        set);
    return out;
}

Normed<double> reference(const Inputs<double>& in, bool add, bool centre) {
    Normed<double> out = empty_result(in);
    for (int row = 0; row < in.rows; ++row) {
        const int at = row * in.channels;
        double mean = 0;
        double square = 0;
        for (int c = 0; c < in.channels; ++c) {
            out.sum[at + c] = in.x[at + c] + (add ? in.delta[at + c] : 0);
            if (centre) mean += out.sum[at + c] / in.channels;
        }
        for (int c = 0; c < in.channels; ++c) square += std::pow(out.sum[at + c] - mean, 2) / in.channels;
        out.mean[row] = mean;
        out.rstd[row] = 1 / std::sqrt(square + 1e-5);
        for (int c = 0; c < in.channels; ++c) {
            out.y[at + c] =
                (out.sum[at + c] - mean) * out.rstd[row] * in.gamma[c] + (centre ? in.beta[c] : 0);
        }
    }
    return out;
}

template <class T>
void expect_forward(const Normed<T>& actual, const Normed<double>& expected, bool add, double tolerance) {
    EXPECT_LE(test::largest_error(actual.y, expected.y), tolerance);
    EXPECT_LE(test::largest_error(actual.rstd, expected.rstd), tolerance);
    EXPECT_LE(test::largest_error(actual.mean, expected.mean), 10 * tolerance);
    EXPECT_TRUE(!add || test::largest_error(actual.sum, expected.sum) <= tolerance);
}

TEST(NormKernels, forward_equals_plain_loops_with_and_without_the_residual) {
    for (const auto& [rows, channels] : kSizes) {
        for (const bool add : {false, true}) {
            const auto in = inputs<double>(rows, channels);
            const auto in32 = inputs<float>(rows, channels);
            for (const auto set : test::supported_sets()) {
                SCOPED_TRACE(fmt::format("{} x {}, add {}, {}", rows, channels, add, name(set)));
                expect_forward(rms(in, add, set), reference(in, add, false), add, 1e-14);
                expect_forward(rms(in32, add, set), reference(in, add, false), add, 1e-6);
                if (channels == 1) continue;  // x − mean is 0
                expect_forward(layer(in, add, set), reference(in, add, true), add, 1e-13);
                expect_forward(layer(in32, add, set), reference(in, add, true), add, 2e-6);
            }
        }
    }
}

template <class T>
struct Gradients {
    std::vector<T> dx, dgamma, dbeta;
};

// dgamma and dbeta begin as `initial`; kept only when accumulating.
template <class T>
Gradients<T> rms_gradients(const Inputs<T>& in, const std::vector<T>& dy, const T* dsum, bool accumulate,
                           InstructionSet set) {
    const auto out = rms(in, false, set);
    Gradients<T> gradients{std::vector<T>(in.x.size()), std::vector<T>(in.channels, T{2}), {}};
    std::vector<std::byte> scratch(kernels::norm_backward_scratch_bytes(in.channels, sizeof(T)),
                                   std::byte{0xff});
    kernels::rms_norm_backward(
        kernels::RmsNormBackward<T>{in.rows, in.channels, dy.data(), in.x.data(), in.gamma.data(),
                                    out.rstd.data(), dsum, gradients.dx.data(), gradients.dgamma.data(),
                                    accumulate, scratch.data()},
        set);
    return gradients;
}

template <class T>
Gradients<T> layer_gradients(const Inputs<T>& in, const std::vector<T>& dy, const T* dsum, bool accumulate,
                             InstructionSet set) {
    const auto out = layer(in, false, set);
    Gradients<T> gradients{std::vector<T>(in.x.size()), std::vector<T>(in.channels, T{2}),
                           std::vector<T>(in.channels, T{2})};
    std::vector<std::byte> scratch(kernels::norm_backward_scratch_bytes(in.channels, sizeof(T)),
                                   std::byte{0xff});
    kernels::layer_norm_backward(
        kernels::LayerNormBackward<T>{in.rows, in.channels, dy.data(), in.x.data(), in.gamma.data(),
                                      out.mean.data(), out.rstd.data(), dsum, gradients.dx.data(),
                                      gradients.dgamma.data(), gradients.dbeta.data(), accumulate,
                                      scratch.data()},
        set);
    return gradients;
}

TEST(NormKernels, backward_equals_finite_differences) {
    const auto in = inputs<double>(19, 37);
    const auto dy = normal_values<double>(in.x.size(), 5);
    for (const auto set : test::supported_sets()) {
        SCOPED_TRACE(name(set));
        const auto loss = [&](auto norm, auto member) {
            return [=, &in, &dy](const std::vector<double>& value) {
                Inputs<double> changed = in;
                changed.*member = value;
                return test::dot(norm(changed, false, set).y, dy);
            };
        };
        const auto of_rms = rms_gradients<double>(in, dy, nullptr, false, set);
        test::expect_gradient(loss(rms<double>, &Inputs<double>::x), in.x, of_rms.dx, 1e-7);
        test::expect_gradient(loss(rms<double>, &Inputs<double>::gamma), in.gamma, of_rms.dgamma, 1e-7);
        const auto of_layer = layer_gradients<double>(in, dy, nullptr, false, set);
        test::expect_gradient(loss(layer<double>, &Inputs<double>::x), in.x, of_layer.dx, 1e-7);
        test::expect_gradient(loss(layer<double>, &Inputs<double>::gamma), in.gamma, of_layer.dgamma, 1e-7);
        test::expect_gradient(loss(layer<double>, &Inputs<double>::beta), in.beta, of_layer.dbeta, 1e-7);
    }
}

TEST(NormKernels, backward_in_float_follows_double_for_odd_sizes) {
    for (const auto& [rows, channels] : kSizes) {
        if (channels == 1) continue;
        const auto in = inputs<double>(rows, channels);
        const auto in32 = inputs<float>(rows, channels);
        const auto dy = normal_values<double>(in.x.size(), 6);
        const std::vector<float> dy32(dy.begin(), dy.end());
        for (const auto set : test::supported_sets()) {
            SCOPED_TRACE(fmt::format("{} x {}, {}", rows, channels, name(set)));
            const auto expected = rms_gradients<double>(in, dy, nullptr, false, InstructionSet::baseline);
            const auto actual = rms_gradients<float>(in32, dy32, nullptr, false, set);
            EXPECT_LE(test::largest_error(actual.dx, expected.dx), 3e-6);
            EXPECT_LE(test::largest_error(actual.dgamma, expected.dgamma), 3e-6);
            const auto expected_layer =
                layer_gradients<double>(in, dy, nullptr, false, InstructionSet::baseline);
            const auto actual_layer = layer_gradients<float>(in32, dy32, nullptr, false, set);
            EXPECT_LE(test::largest_error(actual_layer.dx, expected_layer.dx), 3e-6);
            EXPECT_LE(test::largest_error(actual_layer.dgamma, expected_layer.dgamma), 3e-6);
            EXPECT_LE(test::largest_error(actual_layer.dbeta, expected_layer.dbeta), 3e-6);
        }
    }
}

TEST(NormKernels, the_other_path_of_the_residual_is_added_and_gamma_accumulates) {
    const auto in = inputs<double>(4, 21);
    const auto dy = normal_values<double>(in.x.size(), 7);
    const auto dsum = normal_values<double>(in.x.size(), 8);
    const auto set = kernels::best_instruction_set();
    for (const auto run : {rms_gradients<double>, layer_gradients<double>}) {
        const auto plain = run(in, dy, nullptr, false, set);
        const auto both = run(in, dy, dsum.data(), true, set);
        for (std::size_t i = 0; i < dy.size(); ++i) EXPECT_DOUBLE_EQ(both.dx[i], plain.dx[i] + dsum[i]);
        for (std::size_t c = 0; c < 21; ++c) EXPECT_DOUBLE_EQ(both.dgamma[c], plain.dgamma[c] + 2);
        for (std::size_t c = 0; c < plain.dbeta.size(); ++c)
            EXPECT_DOUBLE_EQ(both.dbeta[c], plain.dbeta[c] + 2);
    }
}

TEST(NormKernels, results_do_not_depend_on_the_number_of_threads) {
    const auto in = inputs<float>(300, 65);
    const auto dy = normal_values<float>(in.x.size(), 9);
    const auto set = kernels::best_instruction_set();
    const auto y = rms(in, true, set).y;
    const auto gradients = layer_gradients<float>(in, dy, nullptr, false, set);
    const int usual_threads = omp_get_max_threads();
    omp_set_num_threads(usual_threads + 2);
    EXPECT_EQ(rms(in, true, set).y, y);
    const auto again = layer_gradients<float>(in, dy, nullptr, false, set);
    EXPECT_EQ(again.dx, gradients.dx);
    EXPECT_EQ(again.dgamma, gradients.dgamma);
    EXPECT_EQ(again.dbeta, gradients.dbeta);
    omp_set_num_threads(usual_threads);
}

TEST(NormKernels, a_nan_spoils_its_row_alone) {
    auto in = inputs<float>(3, 33);
    in.x[33 + 5] = NAN;
    for (const auto set : test::supported_sets()) {
        for (const auto& y : {rms(in, false, set).y, layer(in, false, set).y}) {
            EXPECT_TRUE(std::isnan(y[33]));
            EXPECT_FALSE(std::isnan(y[0]) || std::isnan(y[66]));
        }
    }
}

template <class T>
std::vector<T> rotated(std::vector<T> qkv, const std::vector<std::int32_t>& positions, int heads,
                       int kv_heads, int width, bool back, InstructionSet set) {
    std::vector<T> table(100 * width);
    kernels::make_rope_table<T>(100, width, 10000, table);
    const kernels::Rope<T> rope{static_cast<std::int64_t>(positions.size()),
                                heads,
                                kv_heads,
                                width,
                                qkv.data(),
                                positions.data(),
                                table.data(),
                                100};
    back ? kernels::rope_backward(rope, set) : kernels::rope(rope, set);
    return qkv;
}

TEST(RopeKernel, rotates_queries_and_keys_by_their_positions_and_leaves_values) {
    const std::vector<std::int32_t> positions = {0, 7, 99, 3, 3};
    for (const auto& [heads, kv_heads, width] :
         {std::tuple{1, 1, 2}, std::tuple{4, 2, 64}, std::tuple{3, 1, 80}, std::tuple{2, 1, 34}}) {
        const int row_width = (heads + 2 * kv_heads) * width;
        const auto qkv = normal_values<double>(positions.size() * row_width, 10);
        std::vector<double> expected = qkv;
        for (std::size_t t = 0; t < positions.size(); ++t) {
            for (int head = 0; head < heads + kv_heads; ++head) {
                const std::size_t at = t * row_width + head * width;
                for (int i = 0; i < width / 2; ++i) {
                    const double angle = positions[t] * std::pow(10000, -2.0 * i / width);
                    const double a = qkv[at + i];
                    const double b = qkv[at + width / 2 + i];
                    expected[at + i] = a * std::cos(angle) - b * std::sin(angle);
                    expected[at + width / 2 + i] = b * std::cos(angle) + a * std::sin(angle);
                }
            }
        }
        const std::vector<float> qkv32(qkv.begin(), qkv.end());
        for (const auto set : test::supported_sets()) {
            const auto forth = rotated(qkv, positions, heads, kv_heads, width, false, set);
            EXPECT_LE(test::largest_error(forth, expected), 1e-15);
            EXPECT_LE(
                test::largest_error(rotated(qkv32, positions, heads, kv_heads, width, false, set), expected),
                5e-7);
            EXPECT_LE(test::largest_error(rotated(forth, positions, heads, kv_heads, width, true, set), qkv),
                      1e-15);
        }
    }
}

TEST(RopeKernel, refuses_positions_beyond_the_table) {
    const std::vector<float> qkv(6);
    EXPECT_THROW(rotated(qkv, {100}, 1, 1, 2, false, InstructionSet::baseline), CheckError);
    EXPECT_THROW(rotated(qkv, {-1}, 1, 1, 2, false, InstructionSet::baseline), CheckError);
}

}  // namespace
}  // namespace atl
