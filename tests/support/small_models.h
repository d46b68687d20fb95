// Model shapes small enough for tests.
#pragma once

#include "model/model_shape.h"

namespace atl::test {

// 2 layers, 4 heads over 2 key/value heads of 16, untied.
inline ModelShape tiny_llama() {
    return {.kind = ModelKind::llama,
            .layers = 2,
            .hidden = 64,
            .heads = 4,
            .kv_heads = 2,
            .head_width = 16,
            .ffn = 192,
            .vocab = 257,
            .context = 128};
}

inline ModelShape tiny_gpt2() {
    return {.kind = ModelKind::gpt2,
            .layers = 2,
            .hidden = 64,
            .heads = 4,
            .kv_heads = 4,
            .head_width = 16,
            .ffn = 256,
            .vocab = 257,
            .context = 128,
            .tied = true};
}

}  // namespace atl::test
