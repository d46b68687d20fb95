// The parts of a transformer, whatever stands for a part: its tensors, or the values of a program that hold them.
// Llama and GPT-2 are the same parts with and without biases, position table and head of their own; a rank that holds
// some stages of a pipeline has the parts of those.
//
// Linear parts that share their input are packed: one part, rows stacked, so that one product serves them all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/packed_pieces.h"

namespace atl {

template <class Part>
struct NormParts {
    Part gamma;
    std::optional<Part> beta;
};

template <class Part>
struct LinearParts {
    Part weight;
    std::optional<Part> bias;
};

template <class Part>
struct LayerParts {
    std::int64_t layer = 0;
    NormParts<Part> attention_norm;
    LinearParts<Part> qkv;
    LinearParts<Part> projection;
    NormParts<Part> ffn_norm;
    LinearParts<Part> up;  // llama: gate rows, then up rows
    LinearParts<Part> down;
};

template <class Part>
struct ModelParts {
    std::optional<Part> token_embedding;
    std::optional<Part> position_embedding;
    std::vector<LayerParts<Part>> layers;
    std::optional<NormParts<Part>> final_norm;
    std::optional<Part> head;  // none: tied to the token embedding
};

// The whole model's: every piece is a whole tensor.
ModelParts<PackedPieces> model_parts(const ModelShape& shape);

// Replaces every part by convert(part), in the order of the forward pass.
template <class Result, class Part, class Convert>
ModelParts<Result> transform(const ModelParts<Part>& parts, Convert convert) {
    const auto maybe = [&](const std::optional<Part>& part) -> std::optional<Result> {
        if (!part) return std::nullopt;
        return convert(*part);
    };
    const auto norm = [&](const NormParts<Part>& part) {
        return NormParts<Result>{convert(part.gamma), maybe(part.beta)};
    };
    const auto linear = [&](const LinearParts<Part>& part) {
        return LinearParts<Result>{convert(part.weight), maybe(part.bias)};
    };
    ModelParts<Result> result{maybe(parts.token_embedding), maybe(parts.position_embedding), {}, {}, {}};
    for (const auto& layer : parts.layers)
        result.layers.push_back({layer.layer, norm(layer.attention_norm), linear(layer.qkv),
                                 linear(layer.projection), norm(layer.ffn_norm), linear(layer.up),
                                 linear(layer.down)});
    if (parts.final_norm) result.final_norm = norm(*parts.final_norm);
    result.head = maybe(parts.head);
    return result;
}

// Visits every part in the order in which backward finishes its gradient.
template <class Part, class Visit>
void for_each_backward(ModelParts<Part>& parts, Visit visit) {
    const auto both = [&](Part& first, std::optional<Part>& second) {
        visit(first);
        if (second) visit(*second);
    };
    if (parts.head) visit(*parts.head);
    if (parts.final_norm) both(parts.final_norm->gamma, parts.final_norm->beta);
    for (auto layer = parts.layers.rbegin(); layer != parts.layers.rend(); ++layer) {
        both(layer->down.weight, layer->down.bias);
        both(layer->up.weight, layer->up.bias);
        both(layer->ffn_norm.gamma, layer->ffn_norm.beta);
        both(layer->projection.weight, layer->projection.bias);
        both(layer->qkv.weight, layer->qkv.bias);
        both(layer->attention_norm.gamma, layer->attention_norm.beta);
    }
    if (parts.position_embedding) visit(*parts.position_embedding);
    if (parts.token_embedding) visit(*parts.token_embedding);
}

}  // namespace atl
