#include "model/model_shape.h"

#include <fmt/format.h>

namespace atl {
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
    return {.kind = config.kind,
            .layers = config.layers,
            .hidden = config.hidden,
            .heads = config.heads,
            .kv_heads = config.kv_heads,
            .head_width = config.head_width(),
            .ffn = config.ffn,
            .vocab = config.vocab,
            .context = config.context,
            .tied = config.tied,
            .norm_epsilon = config.norm_epsilon,
            .rope_theta = config.rope_theta};
}

}  // namespace atl
