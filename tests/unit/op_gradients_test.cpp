// Every op, forward and backward, against autograd.
//
// The reference is computed in fp64 from the same inputs. fp64 ops must agree to 1e-10 of the largest element.
// fp32 ops agree to 1e-6: their sums run in another order than the reference's, and each element is rounded once
// to fp32 (6e-8); nothing here sums more than a few dozen terms. Matrix products are libtorch's own kernels in the
// same orientation, so against fp32 autograd they must be bit-equal.
#include <gtest/gtest.h>

#include "support/op_harness.h"

namespace atl {
namespace {

using at::Tensor;
using test::OpCase;
using test::OpWrite;
using test::relative_difference;
using test::run_op;

template <class T>
class OpGradients : public ::testing::Test {
  protected:
    static constexpr at::ScalarType kType = std::is_same_v<T, float> ? at::kFloat : at::kDouble;
    static constexpr double kTolerance = std::is_same_v<T, float> ? 1e-6 : 1e-10;

    void SetUp() override { at::manual_seed(20); }

    // Random values that fp32 holds exactly, in fp64: both dtypes start from the same numbers.
    static Tensor random(at::IntArrayRef shape) {
        return at::randn(shape, at::TensorOptions().dtype(at::kFloat)).to(at::kDouble);
    }
    static Tensor leaf(at::IntArrayRef shape) { return random(shape).requires_grad_(); }
    static Tensor given(const Tensor& tensor) { return tensor.detach().to(kType); }
    static Tensor doubles(std::vector<double> values) {
        return at::tensor(values, at::TensorOptions().dtype(at::kDouble));
    }
    static Tensor indices(std::vector<std::int32_t> values) {
        return at::tensor(values, at::TensorOptions().dtype(at::kInt));
    }

    static std::vector<Tensor> run(OpKind kind, OpAttributes attributes, std::vector<Tensor> reads,
                                   std::vector<OpWrite> writes) {
        for (Tensor& read : reads) {
            if (read.scalar_type() != at::kInt) read = given(read);
        }
        for (OpWrite& write : writes) {
            if (write.initial) write.initial = given(*write.initial);
        }
        return run_op({kind, attributes, reads, writes, kType});
    }
    static void expect_equal(const Tensor& actual, const Tensor& expected, const char* what) {
        EXPECT_LE(relative_difference(actual, expected), kTolerance) << what;
    }
};

using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(OpGradients, Types);

constexpr std::int64_t kTokens = 7;
constexpr std::int64_t kChannels = 24;

TYPED_TEST(OpGradients, rms_norm_with_and_without_a_residual_sum) {
    const double epsilon = 1e-5;
    Tensor x = this->leaf({kTokens, kChannels}), delta = this->leaf({kTokens, kChannels});
    Tensor gamma = this->leaf({kChannels});
    const Tensor sum = x + delta;
    const Tensor rstd = (sum.square().mean(-1) + epsilon).rsqrt();
    const Tensor y = sum * rstd.unsqueeze(-1) * gamma;
    const Shape matrix = {kTokens, kChannels};
    const auto forward = this->run(OpKind::add_rms_norm, NormAttributes{epsilon}, {x, delta, gamma},
                                   {{matrix}, {matrix}, {{kTokens}}});
    this->expect_equal(forward[0], sum, "sum");
    this->expect_equal(forward[1], y, "y");
    this->expect_equal(forward[2], rstd, "rstd");
    const auto plain =
        this->run(OpKind::rms_norm, NormAttributes{epsilon}, {forward[0], gamma}, {{matrix}, {{kTokens}}});
    this->expect_equal(plain[0], y, "plain y");

    const Tensor dy = this->random({kTokens, kChannels}), dsum = this->random({kTokens, kChannels});
    ((y * dy).sum() + (sum * dsum).sum()).backward();
    const Tensor before = this->random({kChannels});
    for (const bool accumulate : {false, true}) {
        const auto backward =
            this->run(OpKind::rms_norm_backward, AccumulateAttributes{accumulate},
                      {dy, forward[0], gamma, forward[2], dsum}, {{matrix}, {{kChannels}, {}, before}});
        this->expect_equal(backward[0], x.grad(), "dx");
        this->expect_equal(backward[1], accumulate ? gamma.grad() + before : gamma.grad(), "dgamma");
    }
}

TYPED_TEST(OpGradients, layer_norm_with_and_without_a_residual_sum) {
    const double epsilon = 1e-5;
    Tensor x = this->leaf({kTokens, kChannels}), delta = this->leaf({kTokens, kChannels});
    Tensor gamma = this->leaf({kChannels}), beta = this->leaf({kChannels});
    const Tensor sum = x + delta;
    const Tensor y = at::layer_norm(sum, {kChannels}, gamma, beta, epsilon);
    const Shape matrix = {kTokens, kChannels};
    const auto forward = this->run(OpKind::add_layer_norm, NormAttributes{epsilon}, {x, delta, gamma, beta},
                                   {{matrix}, {matrix}, {{kTokens}}, {{kTokens}}});
    this->expect_equal(forward[1], y, "y");
    const auto plain = this->run(OpKind::layer_norm, NormAttributes{epsilon}, {forward[0], gamma, beta},
                                 {{matrix}, {{kTokens}}, {{kTokens}}});
    this->expect_equal(plain[0], y, "plain y");

    const Tensor dy = this->random({kTokens, kChannels}), dsum = this->random({kTokens, kChannels});
    ((y * dy).sum() + (sum * dsum).sum()).backward();
    const Tensor before = this->random({kChannels});
    for (const bool accumulate : {false, true}) {
        const auto backward = this->run(OpKind::layer_norm_backward, AccumulateAttributes{accumulate},
                                        {dy, forward[0], gamma, forward[2], forward[3], dsum},
                                        {{matrix}, {{kChannels}, {}, before}, {{kChannels}, {}, before}});
        this->expect_equal(backward[0], x.grad(), "dx");
        this->expect_equal(backward[1], accumulate ? gamma.grad() + before : gamma.grad(), "dgamma");
        this->expect_equal(backward[2], accumulate ? beta.grad() + before : beta.grad(), "dbeta");
    }
}

TYPED_TEST(OpGradients, linear_with_and_without_bias_is_bit_equal_to_autograd) {
    constexpr std::int64_t kOutputs = 40;
    const auto leaf = [&](at::IntArrayRef shape) {
        return this->given(this->random(shape)).requires_grad_();
    };
    Tensor x = leaf({kTokens, kChannels}), weight = leaf({kOutputs, kChannels}), bias = leaf({kOutputs});
    const Tensor y = at::addmm(bias, x, weight.t());
    const Tensor dy = this->given(this->random({kTokens, kOutputs}));
    y.backward(dy);
    const auto forward =
        this->run(OpKind::linear, NoAttributes{}, {x, weight, bias}, {{{kTokens, kOutputs}}});
    EXPECT_TRUE(forward[0].equal(y));
    const auto plain = this->run(OpKind::linear, NoAttributes{}, {x, weight}, {{{kTokens, kOutputs}}});
    EXPECT_TRUE(plain[0].equal(at::mm(x, weight.t())));
    const auto input =
        this->run(OpKind::linear_backward_input, NoAttributes{}, {dy, weight}, {{{kTokens, kChannels}}});
    EXPECT_TRUE(input[0].equal(x.grad()));
    const auto first = this->run(OpKind::linear_backward_weight, AccumulateAttributes{false}, {dy, x},
                                 {{{kOutputs, kChannels}}, {{kOutputs}}});
    EXPECT_TRUE(first[0].equal(weight.grad()));
    this->expect_equal(first[1], bias.grad(), "dbias");  // another order of the sum than libtorch's
    const auto second = this->run(OpKind::linear_backward_weight, AccumulateAttributes{true}, {dy, x},
                                  {{{kOutputs, kChannels}, {}, first[0]}, {{kOutputs}, {}, first[1]}});
    EXPECT_TRUE(second[0].equal(at::addmm(first[0], dy.t(), x)));
    this->expect_equal(second[1], 2 * bias.grad(), "accumulated dbias");
}

TYPED_TEST(OpGradients, embedding_of_one_and_of_two_tables) {
    constexpr std::int64_t kEntries = 11;
    Tensor table = this->leaf({kEntries, kChannels}), places = this->leaf({kTokens, kChannels});
    const Tensor tokens = this->indices({3, 0, 3, 10, 3, 7, 0});
    const Tensor positions = this->indices({0, 1, 2, 0, 1, 0, 1});
    const Tensor x = at::embedding(table, tokens) + at::embedding(places, positions);
    const Tensor dx = this->random({kTokens, kChannels});
    x.backward(dx);
    const Shape matrix = {kTokens, kChannels};
    const auto both =
        this->run(OpKind::embedding, RowAttributes{}, {tokens, table, positions, places}, {{matrix}});
    this->expect_equal(both[0], x, "two tables");
    const auto one = this->run(OpKind::embedding, RowAttributes{}, {tokens, table}, {{matrix}});
    this->expect_equal(one[0], at::embedding(table, tokens), "one table");
    const Tensor before = this->random({kEntries, kChannels});
    for (const bool accumulate : {false, true}) {
        const auto backward = this->run(OpKind::embedding_backward, AccumulateAttributes{accumulate},
                                        {tokens, dx}, {{{kEntries, kChannels}, {}, before}});
        this->expect_equal(backward[0], accumulate ? table.grad() + before : table.grad(), "dtable");
    }
}

TYPED_TEST(OpGradients, swiglu_and_gelu) {
    Tensor gate_up = this->leaf({kTokens, 2 * kChannels});
    const auto halves = gate_up.chunk(2, -1);
    const Tensor activated = at::silu(halves[0]) * halves[1];
    const Tensor dactivated = this->random({kTokens, kChannels});
    activated.backward(dactivated);
    const auto swiglu = this->run(OpKind::swiglu, NoAttributes{}, {gate_up}, {{{kTokens, kChannels}}});
    this->expect_equal(swiglu[0], activated, "swiglu");
    const auto dswiglu = this->run(OpKind::swiglu_backward, NoAttributes{}, {dactivated, gate_up},
                                   {{{kTokens, 2 * kChannels}}});
    this->expect_equal(dswiglu[0], gate_up.grad(), "dgate_up");

    Tensor x = this->leaf({kTokens, kChannels});
    const Tensor y = at::gelu(x, "tanh");
    y.backward(dactivated);
    const auto gelu = this->run(OpKind::gelu, NoAttributes{}, {x}, {{{kTokens, kChannels}}});
    this->expect_equal(gelu[0], y, "gelu");
    const auto dgelu =
        this->run(OpKind::gelu_backward, NoAttributes{}, {dactivated, x}, {{{kTokens, kChannels}}});
    this->expect_equal(dgelu[0], x.grad(), "dx");
}

TYPED_TEST(OpGradients, add_and_square_sum) {
    const Tensor a = this->random({kTokens, kChannels}), b = this->random({kTokens, kChannels});
    const auto sum = this->run(OpKind::add, NoAttributes{}, {a, b}, {{{kTokens, kChannels}}});
    this->expect_equal(sum[0], a + b, "sum");
    const auto squares = this->run(OpKind::square_sum, NoAttributes{}, {a, b}, {{{1}, {}, {}, true}});
    this->expect_equal(squares[0], a.square().sum() + b.square().sum(), "squares");
}

TYPED_TEST(OpGradients, cross_entropy_of_the_sum_with_unused_targets) {
    constexpr std::int64_t kVocab = 37;
    Tensor logits = this->leaf({kTokens, kVocab});
    const Tensor targets = this->indices({3, -1, 36, 0, -1, 5, 5});
    const Tensor loss = at::cross_entropy_loss(logits, targets.to(at::kLong), {}, at::Reduction::Sum, -1);
    loss.backward();
    const OpWrite loss_write{{1}, {}, {}, true};
    const auto with_gradient = this->run(OpKind::cross_entropy, NoAttributes{}, {logits, targets},
                                         {loss_write, {{kTokens, kVocab}, 0}});
    this->expect_equal(with_gradient[0], loss, "loss");
    this->expect_equal(with_gradient[1], logits.grad(), "dlogits");
    const auto alone = this->run(OpKind::cross_entropy, NoAttributes{}, {logits, targets}, {loss_write});
    this->expect_equal(alone[0], loss, "loss alone");
}

// Rotary positions and attention over packed documents, with grouped key/value heads.
struct Heads {
    HeadAttributes attributes{4, 2, 16};
    std::int64_t tokens = 13;
    std::vector<std::int32_t> starts = {0, 5, 6, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13};
    std::vector<std::int32_t> positions = {0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 5, 6};
    std::int64_t row() const { return (attributes.heads + 2 * attributes.kv_heads) * attributes.head_width; }
};

Tensor rotate(const Tensor& qkv, const Tensor& positions, const Tensor& table, const Heads& heads) {
    const std::int64_t half = heads.attributes.head_width / 2;
    const std::int64_t turned = heads.attributes.heads + heads.attributes.kv_heads;
    const Tensor rows = qkv.view({heads.tokens, -1, heads.attributes.head_width});
    const Tensor angles = table.index_select(0, positions).unsqueeze(1);
    const Tensor cosine = angles.slice(-1, 0, half), sine = angles.slice(-1, half);
    const Tensor first = rows.slice(1, 0, turned).slice(-1, 0, half);
    const Tensor second = rows.slice(1, 0, turned).slice(-1, half);
    const Tensor rotated = at::cat({first * cosine - second * sine, second * cosine + first * sine}, -1);
    return at::cat({rotated, rows.slice(1, turned)}, 1).view({heads.tokens, -1});
}

TYPED_TEST(OpGradients, rope_turns_queries_and_keys_and_its_backward_turns_them_back) {
    const Heads heads;
    Tensor qkv = this->leaf({heads.tokens, heads.row()});
    const Tensor table = this->random({heads.tokens, heads.attributes.head_width});
    const Tensor positions = this->indices(heads.positions);
    const Tensor rotated = rotate(qkv, positions, table, heads);
    const Tensor drotated = this->random({heads.tokens, heads.row()});
    rotated.backward(drotated);
    const OpWrite in_place{{heads.tokens, heads.row()}, 0};
    const auto forward = this->run(OpKind::rope, heads.attributes, {qkv, positions, table}, {in_place});
    this->expect_equal(forward[0], rotated, "rotated");
    const auto backward =
        this->run(OpKind::rope_backward, heads.attributes, {drotated, positions, table}, {in_place});
    this->expect_equal(backward[0], qkv.grad(), "dqkv");
}

TYPED_TEST(OpGradients, attention_stays_inside_documents) {
    const Heads heads;
    const HeadAttributes& a = heads.attributes;
    Tensor qkv = this->leaf({heads.tokens, heads.row()});
    const Tensor rows = qkv.view({heads.tokens, -1, a.head_width}).transpose(0, 1);
    const auto grouped = [&](std::int64_t first) {
        return rows.slice(0, first, first + a.kv_heads).repeat_interleave(a.heads / a.kv_heads, 0);
    };
    const Tensor q = rows.slice(0, 0, a.heads), k = grouped(a.heads), v = grouped(a.heads + a.kv_heads);
    Tensor hidden = at::ones({heads.tokens, heads.tokens}, at::TensorOptions().dtype(at::kBool));
    for (std::size_t d = 0; d + 1 < heads.starts.size(); ++d) {
        for (std::int32_t i = heads.starts[d]; i < heads.starts[d + 1]; ++i) {
            for (std::int32_t j = heads.starts[d]; j <= i; ++j) hidden[i][j] = false;
        }
    }
    const Tensor scores = (q.matmul(k.transpose(1, 2)) / std::sqrt(static_cast<double>(a.head_width)))
                              .masked_fill(hidden, -std::numeric_limits<double>::infinity());
    const Tensor out = scores.softmax(-1).matmul(v).transpose(0, 1).reshape({heads.tokens, -1});
    const Tensor dout = this->random({heads.tokens, a.heads * a.head_width});
    out.backward(dout);
    const Tensor starts = this->indices(heads.starts);
    const auto forward = this->run(OpKind::attention, a, {qkv, starts},
                                   {{{heads.tokens, a.heads * a.head_width}}, {{a.heads, heads.tokens}}});
    this->expect_equal(forward[0], out, "out");
    this->expect_equal(forward[1], scores.logsumexp(-1), "lse");
    const auto backward =
        this->run(OpKind::attention_backward, a, {dout, qkv, forward[0], forward[1], starts},
                  {{{heads.tokens, heads.row()}}});
    this->expect_equal(backward[0], qkv.grad(), "dqkv");
}

TYPED_TEST(OpGradients, adamw_clips_decays_and_corrects_its_moments_for_three_steps) {
    const AdamwAttributes attributes{0.9, 0.95, 1e-8, 0.1, 0.5};
    const double tokens = 16;
    Tensor w = this->random({kChannels}), m = at::zeros_like(w), v = at::zeros_like(w);
    std::vector<Tensor> state = {w, m, v};
    for (int step = 1; step <= 3; ++step) {
        const double rate = 0.01 * step;
        const Tensor dw = 30 * this->random({kChannels});
        const Tensor gradient = dw / tokens;
        const double norm = gradient.norm().template item<double>();
        ASSERT_GT(norm, attributes.grad_clip) << "the case must clip";
        const Tensor g = gradient * (attributes.grad_clip / norm);
        m = 0.9 * m + 0.1 * g;
        v = 0.95 * v + 0.05 * g * g;
        w = w * (1 - rate * attributes.weight_decay) -
            rate * (m / (1 - std::pow(0.9, step))) / ((v / (1 - std::pow(0.95, step))).sqrt() + 1e-8);
        const Tensor norm2 = dw.square().sum().reshape({1});
        const Tensor scalars = this->doubles({rate, static_cast<double>(step), tokens, 0.0});
        state = run_op({OpKind::adamw,
                        attributes,
                        {this->given(dw), norm2, scalars, this->given(state[0]), this->given(state[1]),
                         this->given(state[2])},
                        {{{kChannels}, 3}, {{kChannels}, 4}, {{kChannels}, 5}},
                        this->kType});
        this->expect_equal(state[0], w, "w");
        this->expect_equal(state[1], m, "m");
        this->expect_equal(state[2], v, "v");
    }
}

TYPED_TEST(OpGradients, sgd_clips_scales_decays_and_refuses_a_norm_that_is_not_finite) {
    const Tensor weight = this->random({kChannels}), dw = this->random({kChannels});
    const double tokens = 4, rate = 0.25, decay = 0.5;
    const double norm = dw.norm().template item<double>() / tokens;
    const Tensor scalars = this->doubles({rate, 1.0, tokens, 0.0});
    const auto run = [&](double clip, double norm2) {
        return run_op({OpKind::sgd,
                       SgdAttributes{decay, clip},
                       {this->given(dw), this->doubles({norm2}), scalars, this->given(weight)},
                       {{{kChannels}, 3}},
                       this->kType})[0];
    };
    const double norm2 = dw.square().sum().template item<double>();
    const Tensor kept = weight * (1 - rate * decay);
    this->expect_equal(run(0, norm2), kept - rate * dw / tokens, "no clipping");
    this->expect_equal(run(norm / 2, norm2), kept - rate * dw / tokens / 2, "clipped to half");
    EXPECT_TRUE(run(0, std::numeric_limits<double>::quiet_NaN()).equal(this->given(weight)));
}

}  // namespace
}  // namespace atl
