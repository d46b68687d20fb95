#include "model/model_shape.h"

#include <fmt/ranges.h>

#include <map>

#include "core/error.h"

namespace atl {
namespace {

ModelShape llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                 std::int64_t ffn) {
    return {.kind = ModelKind::llama,
            .layers = layers,
            .hidden = hidden,
            .heads = heads,
            .kv_heads = kv_heads,
            .head_width = hidden / heads,
            .ffn = ffn};
}

// Llama 3: vocabulary 128,256 and a rotary base of 500,000.
ModelShape llama3(ModelShape shape, bool tied) {
    shape.vocab = 128256;
    shape.context = 8192;
    shape.tied = tied;
    shape.rope_theta = 500000.0;
    return shape;
}

// Byte-level models for trials: 256 bytes and the end-of-text token.
ModelShape bytes(ModelShape shape, std::int64_t context) {
    shape.vocab = 257;
    shape.context = context;
    return shape;
}

ModelShape gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
    return {.kind = ModelKind::gpt2,
            .layers = layers,
            .hidden = hidden,
            .heads = heads,
            .kv_heads = heads,
            .head_width = hidden / heads,
            .ffn = 4 * hidden,
            .vocab = 50257,
            .context = 1024,
            .tied = true};
}

const std::map<std::string, ModelShape, std::less<>>& presets() {
    static const std::map<std::string, ModelShape, std::less<>> table = {
        {"llama-tiny", bytes(llama(2, 64, 4, 2, 192), 128)},
        {"llama-small", bytes(llama(6, 384, 6, 2, 1024), 512)},
        {"llama-1b", llama3(llama(16, 2048, 32, 8, 8192), true)},
        {"llama-3b", llama3(llama(28, 3072, 24, 8, 8192), true)},
        {"llama-8b", llama3(llama(32, 4096, 32, 8, 14336), false)},
        {"gpt2-tiny", bytes(gpt2(2, 64, 4), 128)},
        {"gpt2-124m", gpt2(12, 768, 12)},
        {"gpt2-355m", gpt2(24, 1024, 16)},
        {"gpt2-774m", gpt2(36, 1280, 20)},
        {"gpt2-1558m", gpt2(48, 1600, 25)},
    };
    return table;
}

}  // namespace

std::vector<std::string> problems(const ModelShape& shape) {
    std::vector<std::string> found;
    const auto positive = [&](std::string_view name, std::int64_t value) {
        if (value < 1) found.push_back(fmt::format("{} is {}; it must be at least 1", name, value));
    };
    positive("layers", shape.layers);
    positive("hidden", shape.hidden);
    positive("heads", shape.heads);
    positive("kv_heads", shape.kv_heads);
    positive("head_width", shape.head_width);
    positive("ffn", shape.ffn);
    positive("vocab", shape.vocab);
    positive("context", shape.context);
    if (!found.empty()) return found;
    if (shape.heads % shape.kv_heads != 0)
        found.push_back(
            fmt::format("heads {} is not a multiple of kv_heads {}", shape.heads, shape.kv_heads));
    if (shape.kind == ModelKind::llama) {
        if (shape.head_width % 2 != 0)
            found.push_back(
                fmt::format("head_width {} is odd; rotary positions turn pairs", shape.head_width));
        return found;
    }
    if (shape.kv_heads != shape.heads)
        found.push_back(fmt::format("kv_heads {} differs from heads {}; gpt2 has no grouped heads",
                                    shape.kv_heads, shape.heads));
    if (shape.head_width * shape.heads != shape.hidden)
        found.push_back(fmt::format("hidden {} is not heads {} times head_width {}", shape.hidden,
                                    shape.heads, shape.head_width));
    if (!shape.tied) found.push_back("tied is false; gpt2's head is its token embedding");
    return found;
}

ModelShape shape_of(const ModelConfig& config) {
    if (!config.preset.empty()) {
        auto shape = preset(config.preset);
        if (!shape)
            throw UserError(fmt::format("[model] no preset is named \"{}\"; there are {}", config.preset,
                                        fmt::join(preset_names(), ", ")));
        if (config.context > 0) shape->context = config.context;
        return *shape;
    }
    return {.kind = config.kind,
            .layers = config.layers,
            .hidden = config.hidden,
            .heads = config.heads,
            .kv_heads = config.kv_heads > 0 ? config.kv_heads : config.heads,
            .head_width = config.head_width(),
            .ffn = config.ffn,
            .vocab = config.vocab,
            .context = config.context,
            .tied = config.tied || config.kind == ModelKind::gpt2,
            .norm_epsilon = config.norm_epsilon,
            .rope_theta = config.rope_theta};
}

std::optional<ModelShape> preset(std::string_view name) {
    const auto found = presets().find(name);
    if (found == presets().end()) return std::nullopt;
    return found->second;
}

std::vector<std::string> preset_names() {
    std::vector<std::string> names;
    for (const auto& [name, shape] : presets()) names.push_back(name);
    return names;
}

}  // namespace atl
