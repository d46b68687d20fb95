// ModelShape: the numbers that make a model.
//
// llama: RMSNorm, rotary positions, grouped heads, SwiGLU, no biases. gpt2: LayerNorm, learned positions, GELU
// (tanh form), biases, head tied to the embedding.
//
// Units: counts of layers, features, heads, rows and tokens. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace atl {

struct ModelShape {
    ModelKind kind = ModelKind::llama;
    std::int64_t layers = 0;
    std::int64_t hidden = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;    // gpt2: equal to heads
    std::int64_t head_width = 0;  // gpt2: hidden / heads
    std::int64_t ffn = 0;
    std::int64_t vocab = 0;
    std::int64_t context = 0;  // longest sequence; rows of gpt2's position table
    bool tied = false;         // the head shares the token embedding
    double norm_epsilon = 1e-5;
    double rope_theta = 10000.0;  // llama

    std::int64_t qkv_rows() const { return (heads + 2 * kv_heads) * head_width; }
    bool operator==(const ModelShape&) const = default;
};

// One line per broken rule ("heads 12 is not a multiple of kv_heads 5"); empty if the shape can be built.
std::vector<std::string> problems(const ModelShape& shape);

// Of a resolved config: presets and derived numbers are filled in (src/config).
ModelShape shape_of(const ModelConfig& config);

}  // namespace atl
