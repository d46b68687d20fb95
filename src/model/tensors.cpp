#include "model/tensors.h"

#include <fmt/format.h>

#include "core/check.h"
#include "model/model_parts.h"

namespace atl {
namespace {

using Tensors = PackedPieces;

Tensors one(std::string name, Shape shape, InitialValues initial, bool decays) {
    return whole_tensors(name, {{name, std::move(shape), initial, decays}});
}
Tensors matrix(std::string name, std::int64_t rows, std::int64_t columns,
               InitialValues initial = InitialValues::normal) {
    return one(std::move(name), {rows, columns}, initial, true);
}
Tensors hidden_matrix(std::string name, std::int64_t rows, std::int64_t columns,
                      InitialValues initial = InitialValues::normal) {
    Tensors tensors = matrix(std::move(name), rows, columns, initial);
    tensors.pieces.front().tensor.hidden = true;
    return tensors;
}
Tensors vector(std::string name, std::int64_t size, InitialValues initial) {
    return one(std::move(name), {size}, initial, false);
}
Tensors packed(std::string name, const std::vector<Tensors>& parts) {
    Tensors result{std::move(name), {}};
    for (const auto& part : parts)
        result.pieces.insert(result.pieces.end(), part.pieces.begin(), part.pieces.end());
    return result;
}

NormParts<Tensors> rms(const std::string& name, const ModelShape& shape) {
    return {vector(name + ".weight", shape.hidden, InitialValues::ones), std::nullopt};
}

LayerParts<Tensors> llama_layer(const ModelShape& s, std::int64_t layer) {
    const auto prefix = fmt::format("model.layers.{}.", layer);
    const auto attention = prefix + "self_attn.";
    const auto kv_rows = s.kv_heads * s.head_width;
    LayerParts<Tensors> parts{.layer = layer};
    parts.attention_norm = rms(prefix + "input_layernorm", s);
    parts.qkv.weight = packed(fmt::format("layers.{}.qkv", layer),
                              {hidden_matrix(attention + "q_proj.weight", s.heads * s.head_width, s.hidden),
                               hidden_matrix(attention + "k_proj.weight", kv_rows, s.hidden),
                               hidden_matrix(attention + "v_proj.weight", kv_rows, s.hidden)});
    parts.projection.weight =
        hidden_matrix(attention + "o_proj.weight", s.hidden, s.heads * s.head_width, InitialValues::scaled_residual);
    parts.ffn_norm = rms(prefix + "post_attention_layernorm", s);
    parts.up.weight = packed(fmt::format("layers.{}.gate_up", layer),
                             {hidden_matrix(prefix + "mlp.gate_proj.weight", s.ffn, s.hidden),
                              hidden_matrix(prefix + "mlp.up_proj.weight", s.ffn, s.hidden)});
    parts.down.weight =
        hidden_matrix(prefix + "mlp.down_proj.weight", s.hidden, s.ffn, InitialValues::scaled_residual);
    return parts;
}

ModelParts<Tensors> llama_parts(const ModelShape& s) {
    ModelParts<Tensors> parts;
    parts.token_embedding = matrix("model.embed_tokens.weight", s.vocab, s.hidden);
    for (std::int64_t layer = 0; layer < s.layers; ++layer) parts.layers.push_back(llama_layer(s, layer));
    parts.final_norm = rms("model.norm", s);
    if (!s.tied) parts.head = matrix("lm_head.weight", s.vocab, s.hidden);
    return parts;
}

NormParts<Tensors> layer_norm_parts(const std::string& name, const ModelShape& s) {
    return {vector(name + ".weight", s.hidden, InitialValues::ones),
            vector(name + ".bias", s.hidden, InitialValues::zeros)};
}

LinearParts<Tensors> with_bias(const std::string& name, std::int64_t rows, std::int64_t columns,
                               InitialValues initial = InitialValues::normal) {
    return {hidden_matrix(name + ".weight", rows, columns, initial),
            vector(name + ".bias", rows, InitialValues::zeros)};
}

ModelParts<Tensors> gpt2_parts(const ModelShape& s) {
    ModelParts<Tensors> parts;
    parts.token_embedding = matrix("transformer.wte.weight", s.vocab, s.hidden);
    parts.position_embedding = matrix("transformer.wpe.weight", s.context, s.hidden);
    for (std::int64_t layer = 0; layer < s.layers; ++layer) {
        const auto prefix = fmt::format("transformer.h.{}.", layer);
        parts.layers.push_back({
            layer,
            layer_norm_parts(prefix + "ln_1", s),
            with_bias(prefix + "attn.c_attn", s.qkv_rows(), s.hidden),
            with_bias(prefix + "attn.c_proj", s.hidden, s.hidden, InitialValues::scaled_residual),
            layer_norm_parts(prefix + "ln_2", s),
            with_bias(prefix + "mlp.c_fc", s.ffn, s.hidden),
            with_bias(prefix + "mlp.c_proj", s.hidden, s.ffn, InitialValues::scaled_residual),
        });
    }
    parts.final_norm = layer_norm_parts("transformer.ln_f", s);
    return parts;
}

}  // namespace

ModelParts<PackedPieces> model_parts(const ModelShape& shape) {
    const auto wrong = problems(shape);
    ATOLL_CHECK(wrong.empty(), "{}", wrong.front());
    return shape.kind == ModelKind::llama ? llama_parts(shape) : gpt2_parts(shape);
}

std::vector<TensorSpec> model_tensors(const ModelShape& shape) {
    std::vector<TensorSpec> specs;
    transform<int>(model_parts(shape), [&](const PackedPieces& part) {
        for (const auto& piece : part.pieces) specs.push_back(piece.tensor);
        return 0;
    });
    return specs;
}

std::int64_t parameter_count(const ModelShape& shape) {
    std::int64_t count = 0;
    for (const auto& tensor : model_tensors(shape)) count += element_count(tensor.shape);
    return count;
}

}  // namespace atl
