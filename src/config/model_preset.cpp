#include "config/model_preset.h"

#include <algorithm>
#include <array>

namespace atl {
namespace {

struct Shape {
    std::string_view name;
    ModelKind kind;
    std::int64_t layers, hidden, heads, kv_heads, ffn, vocab, context;
    bool tied;
    double rope_theta;
};

constexpr auto kGpt2 = ModelKind::gpt2;
constexpr auto kLlama = ModelKind::llama;
constexpr double kTheta = 10000.0;

// name, kind, layers, hidden, heads, kv_heads, ffn, vocab, context, tied, rope_theta
constexpr auto kShapes = std::to_array<Shape>({
    {"gpt2-124m", kGpt2, 12, 768, 12, 12, 3072, 50257, 1024, true, kTheta},
    {"gpt2-355m", kGpt2, 24, 1024, 16, 16, 4096, 50257, 1024, true, kTheta},
    {"gpt2-774m", kGpt2, 36, 1280, 20, 20, 5120, 50257, 1024, true, kTheta},
    {"gpt2-1558m", kGpt2, 48, 1600, 25, 25, 6400, 50257, 1024, true, kTheta},
    {"tinyllama-1.1b", kLlama, 22, 2048, 32, 4, 5632, 32000, 2048, false, kTheta},
    {"llama-1b", kLlama, 16, 2048, 32, 8, 8192, 128256, 8192, true, 500000.0},
    {"llama-3b", kLlama, 28, 3072, 24, 8, 8192, 128256, 8192, true, 500000.0},
    {"llama-7b", kLlama, 32, 4096, 32, 32, 11008, 32000, 4096, false, kTheta},
    {"llama-8b", kLlama, 32, 4096, 32, 8, 14336, 128256, 8192, false, 500000.0},
    {"llama-13b", kLlama, 40, 5120, 40, 40, 13824, 32000, 4096, false, kTheta},
    {"llama-70b", kLlama, 80, 8192, 64, 8, 28672, 128256, 8192, false, 500000.0},
});

}  // namespace

std::optional<ModelConfig> model_preset(std::string_view name) {
    const auto shape =
        std::find_if(kShapes.begin(), kShapes.end(), [&](const Shape& known) { return known.name == name; });
    if (shape == kShapes.end()) return std::nullopt;
    ModelConfig model;
    model.kind = shape->kind;
    model.preset = shape->name;
    model.layers = shape->layers;
    model.hidden = shape->hidden;
    model.heads = shape->heads;
    model.kv_heads = shape->kv_heads;
    model.ffn = shape->ffn;
    model.vocab = shape->vocab;
    model.context = shape->context;
    model.tied = shape->tied;
    model.rope_theta = shape->rope_theta;
    return model;
}

std::vector<std::string> model_preset_names() {
    std::vector<std::string> names;
    for (const Shape& shape : kShapes) names.emplace_back(shape.name);
    return names;
}

}  // namespace atl
