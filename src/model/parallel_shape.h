// ParallelShape: how many ranks of an island share a model, and how.
//
// tp ranks cut every layer, pp ranks hold stages of layers, dp ranks hold replicas that see different micro-batches.
// Rank = (dp index · pp + pp index) · tp + tp index. Nothing must divide: heads, feed-forward rows, vocabulary rows
// and tokens are cut into nearly equal ranges.
//
// Units: counts of ranks, stages and layers. Pure data and functions.
#pragma once

#include <string>
#include <vector>

#include "core/ids.h"
#include "layout/box.h"
#include "model/model_shape.h"
#include "program/pipeline_shape.h"

namespace atl {

struct ParallelShape {
    std::int32_t tp = 1;  // tensor and sequence parallel
    std::int32_t pp = 1;
    std::int32_t dp = 1;
    std::int32_t chunks = 1;  // pipeline stages of a rank
    StagePlacement placement = StagePlacement::round_robin;
    std::vector<std::int64_t> stage_layers;  // layers of each stage; empty = nearly equal numbers
    bool zero = false;  // moments and updates of replicated matrices are split over their holders (ZeRO-1)

    std::int32_t ranks() const { return tp * pp * dp; }
    std::int32_t stages() const { return pp * chunks; }
    PipelineShape pipeline() const { return {pp, chunks, placement}; }
    bool operator==(const ParallelShape&) const = default;
};

struct RankPlace {
    std::int32_t tp = 0;
    std::int32_t pp = 0;
    std::int32_t dp = 0;
    bool operator==(const RankPlace&) const = default;
};

RankPlace place_of(const ParallelShape& parallel, Rank rank);
Rank rank_at(const ParallelShape& parallel, const RankPlace& place);

// The layers of a stage. The first stage also has the embedding, the last one the final norm, head and loss.
Range stage_layers(const ModelShape& shape, const ParallelShape& parallel, std::int32_t stage);

// The part-th of `parts` nearly equal ranges of [0, count): the cut that all pieces of tensors follow.
Range nearly_equal_range(std::int64_t count, std::int32_t parts, std::int32_t part);

// One line per broken rule ("tp 8 is more than the model's 4 heads"); empty if the model can be cut like this.
// `tokens` of a micro-batch.
std::vector<std::string> problems(const ModelShape& shape, const ParallelShape& parallel,
                                  std::int64_t tokens);

}  // namespace atl
