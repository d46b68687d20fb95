// Ways to spread small models over ranks: what tests of programs and of numbers both go through.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "model/parallel_shape.h"

namespace atl::test {

// 4 layers, 4 heads over 2 key/value heads; vocabulary and feed-forward are odd.
inline ModelShape odd_llama(bool tied = false) {
    return {.kind = ModelKind::llama,
            .layers = 4,
            .hidden = 16,
            .heads = 4,
            .kv_heads = 2,
            .head_width = 4,
            .ffn = 23,
            .vocab = 131,
            .context = 9,
            .tied = tied};
}

inline ModelShape odd_gpt2() {
    return {.kind = ModelKind::gpt2,
            .layers = 4,
            .hidden = 16,
            .heads = 4,
            .kv_heads = 4,
            .head_width = 4,
            .ffn = 37,
            .vocab = 257,
            .context = 9,
            .tied = true};
}

// Every degree alone, mixes up to eight ranks, uneven and folded stages, with and without split updates.
inline std::vector<ParallelShape> parallel_shapes() {
    std::vector<ParallelShape> shapes = {
        {.tp = 2},
        {.tp = 3},
        {.tp = 4},
        {.pp = 2},
        {.pp = 4},
        {.dp = 2},
        {.dp = 2, .zero = true},
        {.tp = 3, .zero = true},
        {.pp = 3, .stage_layers = {1, 3, 0}},
        {.pp = 2, .chunks = 2},
        {.pp = 2, .chunks = 2, .placement = StagePlacement::fold},
        {.tp = 2, .pp = 2, .stage_layers = {3, 1}},
        {.tp = 2, .dp = 2},
        {.pp = 2, .dp = 2, .zero = true},
        {.pp = 2, .dp = 2, .chunks = 2, .placement = StagePlacement::fold, .zero = true},
        {.tp = 4, .pp = 2},
        {.tp = 4, .dp = 2, .zero = true},
        {.tp = 2, .pp = 4},
        {.tp = 2, .pp = 2, .dp = 2},
        {.tp = 2, .pp = 2, .dp = 2, .zero = true},
        {.tp = 2, .pp = 2, .dp = 2, .chunks = 2, .placement = StagePlacement::fold, .zero = true},
    };
    return shapes;
}

inline std::string to_string(const ParallelShape& parallel) {
    return fmt::format("tp {} pp {} dp {} chunks {}{}{}{}", parallel.tp, parallel.pp, parallel.dp,
                       parallel.chunks, parallel.placement == StagePlacement::fold ? " folded" : "",
                       parallel.stage_layers.empty() ? "" : " uneven", parallel.zero ? " zero" : "");
}

}  // namespace atl::test
