// Whole models against autograd: the loss and every gradient of Llama (grouped heads, tied or not) and GPT-2, over
// two micro-batches of packed documents, from the same parameters.
//
// fp64 must agree to 1e-10 of a tensor's largest element. In fp32 the gradient of a deep composition carries the
// rounding of every activation on its way (6e-8 of its size each), and kernels sum in another order than libtorch's.
// Over 40 random draws of this Llama, autograd's own fp32 gradients are off by 0.7e-6 to 0.9e-6 in the median and by
// up to 1.9e-6, measured against fp64 as a norm over the whole tensor. It is the projections, norms and the residual
// sum that round: with attention's core in fp64 the error stays (0.76e-6 instead of 0.78e-6), with that core alone in
// fp32 it is a third. So 1e-6 is asked for, or, where fp32 itself can't give it, twice what autograd is off by.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "island/loaded_program.h"
#include "model/training_program.h"
#include "support/island_testing.h"

namespace atl {
namespace {

using at::Tensor;
using Parameters = std::map<std::string, Tensor>;

struct Batch {
    Tensor tokens, targets, positions, hidden;  // hidden [T, T]: what a query may not see
};

Tensor tensor_of(BufferView view, const Shape& shape) {
    const auto type = view.dtype == DType::f32   ? at::kFloat
                      : view.dtype == DType::f64 ? at::kDouble
                                                 : at::kInt;
    return at::from_blob(view.data, shape, at::TensorOptions().dtype(type)).clone();
}

Batch batch_of(const MicroBatchView& view) {
    const auto tokens = static_cast<std::int64_t>(view.tokens.size());
    const auto copy = [&](std::span<std::int32_t> values) {
        return tensor_of({values.data(), tokens, DType::i32}, {tokens}).to(at::kLong);
    };
    Batch batch{copy(view.tokens), copy(view.targets), copy(view.positions), {}};
    const Tensor place = at::arange(tokens);
    const Tensor document = place - batch.positions;
    batch.hidden =
        document.unsqueeze(1).ne(document.unsqueeze(0)).logical_or(place.unsqueeze(1).lt(place.unsqueeze(0)));
    return batch;
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const ModelShape& s, const Batch& batch) {
    const std::int64_t tokens = q.size(0);
    const auto heads = [&](const Tensor& x, std::int64_t count) {
        return x.reshape({tokens, count, s.head_width}).transpose(0, 1).repeat_interleave(s.heads / count, 0);
    };
    const Tensor scores = heads(q, s.heads).matmul(heads(k, s.kv_heads).transpose(1, 2)) /
                          std::sqrt(static_cast<double>(s.head_width));
    const Tensor weights = scores.masked_fill(batch.hidden, -INFINITY).softmax(-1);
    return weights.matmul(heads(v, s.kv_heads)).transpose(0, 1).reshape({tokens, -1});
}

Tensor rotate(const Tensor& x, std::int64_t heads, const ModelShape& s, const Batch& batch) {
    const std::int64_t half = s.head_width / 2;
    const Tensor exponents = at::arange(half, at::TensorOptions().dtype(at::kDouble)) * (-2.0 / s.head_width);
    const Tensor angles =
        batch.positions.to(at::kDouble).unsqueeze(1) * at::pow(s.rope_theta, exponents).unsqueeze(0);
    const Tensor cosine = angles.cos().unsqueeze(1).to(x.scalar_type());
    const Tensor sine = angles.sin().unsqueeze(1).to(x.scalar_type());
    const Tensor rows = x.reshape({x.size(0), heads, s.head_width});
    const Tensor first = rows.slice(-1, 0, half), second = rows.slice(-1, half);
    return at::cat({first * cosine - second * sine, second * cosine + first * sine}, -1).reshape_as(x);
}

Tensor llama_hidden(const Parameters& p, const ModelShape& s, const Batch& batch) {
    const auto norm = [&](const Tensor& x, const std::string& name) {
        return x * (x.square().mean(-1, true) + s.norm_epsilon).rsqrt() * p.at(name + ".weight");
    };
    const auto linear = [&](const Tensor& x, const std::string& name) {
        return x.matmul(p.at(name + ".weight").t());
    };
    Tensor x = at::embedding(p.at("model.embed_tokens.weight"), batch.tokens);
    for (std::int64_t layer = 0; layer < s.layers; ++layer) {
        const std::string prefix = "model.layers." + std::to_string(layer) + ".";
        const Tensor normed = norm(x, prefix + "input_layernorm");
        const Tensor q = rotate(linear(normed, prefix + "self_attn.q_proj"), s.heads, s, batch);
        const Tensor k = rotate(linear(normed, prefix + "self_attn.k_proj"), s.kv_heads, s, batch);
        const Tensor v = linear(normed, prefix + "self_attn.v_proj");
        x = x + linear(attend(q, k, v, s, batch), prefix + "self_attn.o_proj");
        const Tensor again = norm(x, prefix + "post_attention_layernorm");
        const Tensor activated =
            at::silu(linear(again, prefix + "mlp.gate_proj")) * linear(again, prefix + "mlp.up_proj");
        x = x + linear(activated, prefix + "mlp.down_proj");
    }
    return norm(x, "model.norm");
}

Tensor gpt2_hidden(const Parameters& p, const ModelShape& s, const Batch& batch) {
    const auto norm = [&](const Tensor& x, const std::string& name) {
        return at::layer_norm(x, {s.hidden}, p.at(name + ".weight"), p.at(name + ".bias"), s.norm_epsilon);
    };
    const auto linear = [&](const Tensor& x, const std::string& name) {
        return x.matmul(p.at(name + ".weight").t()) + p.at(name + ".bias");
    };
    Tensor x = at::embedding(p.at("transformer.wte.weight"), batch.tokens) +
               at::embedding(p.at("transformer.wpe.weight"), batch.positions);
    for (std::int64_t layer = 0; layer < s.layers; ++layer) {
        const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
        const auto qkv = linear(norm(x, prefix + "ln_1"), prefix + "attn.c_attn").chunk(3, -1);
        x = x + linear(attend(qkv[0], qkv[1], qkv[2], s, batch), prefix + "attn.c_proj");
        x = x + linear(at::gelu(linear(norm(x, prefix + "ln_2"), prefix + "mlp.c_fc"), "tanh"),
                       prefix + "mlp.c_proj");
    }
    return norm(x, "transformer.ln_f");
}

Tensor loss_of(const Parameters& p, const ModelShape& s, const Batch& batch) {
    const bool llama = s.kind == ModelKind::llama;
    const std::string head =
        llama ? (s.tied ? "model.embed_tokens.weight" : "lm_head.weight") : "transformer.wte.weight";
    const Tensor hidden = llama ? llama_hidden(p, s, batch) : gpt2_hidden(p, s, batch);
    return at::cross_entropy_loss(hidden.matmul(p.at(head).t()), batch.targets, {}, at::Reduction::Sum, -1);
}

// The norm of the difference over the norm: what fp32 is measured by.
double relative_norm(const Tensor& a, const Tensor& b) {
    return ((a.to(at::kDouble) - b).norm() / b.norm()).item<double>();
}
double relative_largest(const Tensor& a, const Tensor& b) {
    return ((a.to(at::kDouble) - b).abs().max() / b.abs().max()).item<double>();
}

void expect_gradients_of_autograd(const ModelShape& shape, DType dtype) {
    constexpr std::int32_t kMicroBatches = 2;
    LoadedProgram loaded(make_training_program(shape, {.sequences = 2,
                                                       .micro_batches = kMicroBatches,
                                                       .dtype = dtype,
                                                       .bucket_bytes = 10'000,
                                                       .scratch_bytes =
                                                           [](const Program& program, const Op& op) {
                                                               return op_scratch_bytes(program, op, 1);
                                                           }}),
                         shape, {}, {});
    const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-6;
    Parameters parameters, narrow;  // fp64, and fp32 for autograd's own rounding
    at::manual_seed(5);
    for (const TensorSpec& spec : model_tensors(shape)) {
        const BufferView view = loaded.memory.view(spec.name);
        // Larger than initial values, so that no part of the model is nearly linear; norms around one.
        const double center = spec.initial == InitialValues::ones ? 1.0 : 0.0;
        const Tensor values = at::randn(spec.shape, at::TensorOptions().dtype(at::kFloat)) * 0.2 + center;
        const Tensor stored = dtype == DType::f64 ? values.to(at::kDouble) : values;
        std::memcpy(view.data, stored.contiguous().data_ptr(), static_cast<std::size_t>(view.bytes()));
        parameters[spec.name] = values.to(at::kDouble).set_requires_grad(true);
        narrow[spec.name] = values.clone().set_requires_grad(true);
    }
    std::vector<double> losses;
    for (std::int32_t k = 0; k < kMicroBatches; ++k) {
        test::fill_random_batch(loaded.inputs(k), shape.context, shape.vocab, 3, 2 * k);
        const Tensor loss = loss_of(parameters, shape, batch_of(loaded.inputs(k)));
        loss.backward();
        loss_of(narrow, shape, batch_of(loaded.inputs(k))).backward();
        losses.push_back(loss.item<double>());
    }
    const double scalars[4] = {0.0, 1, 1, 0};  // rate 0: the parameters stay as they are
    std::ranges::copy(scalars, loaded.memory.view("scalars").as<double>().begin());
    loaded.executor.run();
    for (std::int32_t k = 0; k < kMicroBatches; ++k) EXPECT_NEAR(loaded.loss(k) / losses[k], 1.0, tolerance);
    for (const TensorSpec& spec : model_tensors(shape)) {
        const Tensor gradient = tensor_of(loaded.memory.view("grad/" + spec.name), spec.shape);
        const Tensor expected = parameters[spec.name].grad();
        ASSERT_GT(expected.norm().item<double>(), 0) << spec.name;
        if (dtype == DType::f64) {
            EXPECT_LE(relative_largest(gradient, expected), tolerance) << spec.name;
        } else {
            const double own = relative_norm(narrow.at(spec.name).grad(), expected);
            EXPECT_LE(relative_norm(gradient, expected), std::max(tolerance, 2 * own)) << spec.name;
        }
    }
    EXPECT_EQ(loaded.executor.allocations().count, 0);
}

TEST(ModelGradients, llama_with_grouped_heads_equals_autograd) {
    expect_gradients_of_autograd(test::small_llama(false), DType::f64);
    expect_gradients_of_autograd(test::small_llama(false), DType::f32);
}

TEST(ModelGradients, llama_with_a_tied_head_equals_autograd) {
    expect_gradients_of_autograd(test::small_llama(true), DType::f64);
    expect_gradients_of_autograd(test::small_llama(true), DType::f32);
}

TEST(ModelGradients, gpt2_equals_autograd) {
    expect_gradients_of_autograd(test::small_gpt2(), DType::f64);
    expect_gradients_of_autograd(test::small_gpt2(), DType::f32);
}

}  // namespace
}  // namespace atl
