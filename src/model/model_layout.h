// Which rank holds which boxes of which logical tensor.
//
// Norms and learned positions are whole on every tensor-parallel rank of their stage. Query heads go with their
// key/value head; with more ranks than key/value heads several ranks hold the same one. Feed-forward and vocabulary
// rows are cut. Matrices whose product is a partial sum (projection, down) are cut by columns; their biases, which
// must be added once, are held by the first tensor-parallel rank alone. A tied head is on the first stage and on the
// last. Under `zero`, moments of a matrix are cut once more by rows over the holders of the same box.
//
// Pure functions of their arguments. Cost: ranks · tensors.
#pragma once

#include "layout/layout.h"
#include "model/model_parts.h"
#include "model/parallel_shape.h"

namespace atl {

// What one rank computes with; counts and ranges of logical heads and rows.
struct RankShape {
    Range heads;
    Range kv_heads;
    Range ffn;
    Range vocab;
    std::vector<std::int32_t> stages;  // ascending
    bool has_embedding = false;        // its stages hold the first one
    bool has_head = false;             // … the last one
};

RankShape rank_shape(const ModelShape& shape, const ParallelShape& parallel, Rank rank);

// Parts as this rank holds them: pieces of tensors, rows stacked. Layers of other stages are left out.
ModelParts<PackedPieces> rank_parts(const ModelShape& shape, const ParallelShape& parallel, Rank rank);

// By logical tensor, [rank]: the boxes of parameters and gradients …
Layout parameter_layout(const ModelShape& shape, const ParallelShape& parallel);
// … and of moments.
Layout moment_layout(const ModelShape& shape, const ParallelShape& parallel);

}  // namespace atl
