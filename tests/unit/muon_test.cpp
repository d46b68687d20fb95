// Muon's op against the polynomial that its Newton–Schulz steps make of singular values, which libtorch decomposes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/op_harness.h"

namespace atl {
namespace {

using at::Tensor;
using test::relative_difference;
using test::run_op;

struct MuonStep {
    MuonAttributes attributes;
    double rate = 1;
    double tokens = 1;
    double norm2 = 0;  // 0: of dw alone
};

// {w, m} after a step, in dw's type.
std::vector<Tensor> muon(const MuonStep& step, const Tensor& dw, const Tensor& w, const Tensor& m) {
    const double norm2 = step.norm2 == 0 ? dw.to(at::kDouble).square().sum().item<double>() : step.norm2;
    const auto doubles = [](std::vector<double> values) {
        return at::tensor(values, at::TensorOptions().dtype(at::kDouble));
    };
    const Shape shape(dw.sizes().begin(), dw.sizes().end());
    return run_op({OpKind::muon,
                   step.attributes,
                   {dw, doubles({norm2}), doubles({step.rate, 1, step.tokens, 0}), w, m},
                   {{shape, 3}, {shape, 4}},
                   dw.scalar_type()});
}

double scale_of(const Tensor& matrix) {
    return 0.2 * std::sqrt(static_cast<double>(std::max(matrix.size(0), matrix.size(1))));
}

// What a first step without decay makes of a gradient, in fp64.
Tensor orthogonalised(const Tensor& dw) {
    const Tensor zero = at::zeros_like(dw);
    return -muon({}, dw, zero, zero)[0].to(at::kDouble) / scale_of(dw);
}

Tensor gaussian(std::int64_t rows, std::int64_t columns, at::ScalarType type = at::kFloat) {
    return at::randn({rows, columns}, at::TensorOptions().dtype(at::kFloat)).to(type);
}

// U·p(p(p(p(p(S)))))·Vᵀ with p(s) = a·s + b·s³ + c·s⁵.
Tensor reference(const Tensor& x) {
    const auto [u, s, vt] = at::linalg_svd(x / (x.norm() + 1e-7), false);
    Tensor values = s;
    for (int step = 0; step < 5; ++step)
        values = 3.4445 * values - 4.7750 * values.pow(3) + 2.0315 * values.pow(5);
    return at::mm(u * values, vt);
}

class Muon : public testing::Test {
  protected:
    void SetUp() override { at::manual_seed(31); }
};

TEST_F(Muon, brings_every_singular_value_of_a_random_matrix_near_one) {
    const Tensor values = at::linalg_svdvals(orthogonalised(gaussian(64, 256)));
    EXPECT_GE(values.min().item<double>(), 0.66);
    EXPECT_LE(values.max().item<double>(), 1.16);
}

TEST_F(Muon, steps_as_far_for_a_gradient_of_any_length) {
    const Tensor dw = gaussian(48, 32);
    const Tensor once = orthogonalised(dw);
    for (const double factor : {1e-3, 8.0, 1e4})
        EXPECT_LE(relative_difference(orthogonalised(factor * dw), once), 1e-4) << factor;
}

TEST_F(Muon, steps_a_transposed_matrix_by_the_transposed_step) {
    for (const std::int64_t rows : {16, 40, 90}) {
        const Tensor dw = gaussian(rows, 40);
        const Tensor transposed = orthogonalised(dw.t().contiguous()).t();
        EXPECT_LE(relative_difference(transposed, orthogonalised(dw)), 1e-4) << rows;
    }
}

TEST_F(Muon, equals_the_formula_over_three_steps_with_momentum_clipping_and_decay) {
    for (const auto type : {at::kFloat, at::kDouble}) {
        const double tolerance = type == at::kFloat ? 2e-5 : 1e-10, tokens = 16, clip = 0.5;
        Tensor w = gaussian(24, 40, at::kDouble), m = at::zeros_like(w);
        std::vector<Tensor> state{w.to(type), m.to(type)};
        for (int step = 1; step <= 3; ++step) {
            const double rate = 0.01 * step;
            const Tensor dw = 30 * gaussian(24, 40, at::kDouble);
            const double norm = dw.norm().item<double>() / tokens;
            ASSERT_GT(norm, clip) << "the case must clip";
            const Tensor g = dw / tokens * (clip / norm);
            m = 0.9 * m + g;
            w = w * (1 - rate * 0.1) - rate * scale_of(w) * reference(g + 0.9 * m);
            const MuonStep options{{.momentum = 0.9, .weight_decay = 0.1, .grad_clip = clip}, rate, tokens,
                                   dw.square().sum().item<double>()};
            state = muon(options, dw.to(type), state[0], state[1]);
            EXPECT_LE(relative_difference(state[0], w), tolerance) << "step " << step;
            EXPECT_LE(relative_difference(state[1], m), tolerance) << "step " << step;
        }
    }
}

TEST_F(Muon, writes_nothing_when_the_norm_is_not_finite) {
    const Tensor dw = gaussian(6, 4), w = gaussian(6, 4), m = gaussian(6, 4);
    const auto state = muon({.norm2 = std::numeric_limits<double>::infinity()}, dw, w, m);
    EXPECT_TRUE(state[0].equal(w));
    EXPECT_TRUE(state[1].equal(m));
}

TEST_F(Muon, of_a_gradient_that_is_nothing_steps_nowhere) {
    const Tensor zero = at::zeros({6, 4});
    EXPECT_TRUE(muon({.norm2 = 1}, zero, zero, zero)[0].equal(zero));
}

}  // namespace
}  // namespace atl
