#include "model/model_layout.h"

#include <algorithm>

#include "core/check.h"
#include "model/shared_rows.h"

namespace atl {
namespace {

Range scaled(const Range& range, std::int64_t factor) {
    return {range.begin * factor, range.end * factor};
}

Range shifted(const Range& range, std::int64_t by) {
    return {range.begin + by, range.end + by};
}

// Query heads stay with their key/value head. With more ranks than key/value heads, each of those gets nearly as many
// ranks as the others, which share its query heads.
void cut_heads(const ModelShape& shape, std::int32_t tp, std::int32_t index, RankShape& rank) {
    const auto queries_per_key = shape.heads / shape.kv_heads;
    if (tp <= shape.kv_heads) {
        rank.kv_heads = nearly_equal_range(shape.kv_heads, tp, index);
        rank.heads = scaled(rank.kv_heads, queries_per_key);
        return;
    }
    const auto keys = static_cast<std::int32_t>(shape.kv_heads);
    for (std::int32_t key = 0; key < keys; ++key) {
        const auto ranks = nearly_equal_range(tp, keys, key);
        if (index < ranks.begin || index >= ranks.end) continue;
        rank.kv_heads = {key, key + 1};
        rank.heads = shifted(nearly_equal_range(queries_per_key, static_cast<std::int32_t>(ranks.size()),
                                                index - static_cast<std::int32_t>(ranks.begin)),
                             key * queries_per_key);
    }
}

// Cuts the parts of a layer for one tensor-parallel rank.
class LayerCut {
  public:
    LayerCut(const ModelShape& shape, const RankShape& rank, bool adds_biases)
        : adds_biases_(adds_biases), columns_of_heads_(scaled(rank.heads, shape.head_width)), ffn_(rank.ffn) {
        const auto keys = scaled(rank.kv_heads, shape.head_width);
        const auto first_key = shape.heads * shape.head_width;
        const auto first_value = first_key + shape.kv_heads * shape.head_width;
        qkv_rows_ = {columns_of_heads_, shifted(keys, first_key), shifted(keys, first_value)};
        up_rows_ = {ffn_};
        if (shape.kind == ModelKind::llama) up_rows_.push_back(shifted(ffn_, shape.ffn));
    }

    LayerParts<PackedPieces> operator()(const LayerParts<PackedPieces>& layer) const {
        return {layer.layer,
                layer.attention_norm,
                by_rows(layer.qkv, qkv_rows_),
                by_columns(layer.projection, columns_of_heads_),
                layer.ffn_norm,
                by_rows(layer.up, up_rows_),
                by_columns(layer.down, ffn_)};
    }

  private:
    static LinearParts<PackedPieces> by_rows(const LinearParts<PackedPieces>& linear,
                                             const std::vector<Range>& rows) {
        LinearParts<PackedPieces> cut{select_rows(linear.weight, rows), std::nullopt};
        if (linear.bias) cut.bias = select_rows(*linear.bias, rows);
        return cut;
    }
    // The product is a partial sum; one rank alone adds the bias to it.
    LinearParts<PackedPieces> by_columns(const LinearParts<PackedPieces>& linear,
                                         const Range& columns) const {
        return {select_columns(linear.weight, columns), adds_biases_ ? linear.bias : std::nullopt};
    }

    bool adds_biases_;
    Range columns_of_heads_;
    Range ffn_;
    std::vector<Range> qkv_rows_;
    std::vector<Range> up_rows_;
};

ModelParts<PackedPieces> cut_parts(const ModelParts<PackedPieces>& whole, const ModelShape& shape,
                                   const ParallelShape& parallel, Rank rank) {
    const auto here = rank_shape(shape, parallel, rank);
    const LayerCut cut(shape, here, place_of(parallel, rank).tp == 0);
    ModelParts<PackedPieces> parts;
    if (here.has_embedding || (here.has_head && shape.tied))
        parts.token_embedding = select_rows(*whole.token_embedding, {here.vocab});
    if (here.has_embedding) parts.position_embedding = whole.position_embedding;
    for (const auto stage : here.stages) {
        const auto layers = stage_layers(shape, parallel, stage);
        for (auto layer = layers.begin; layer < layers.end; ++layer)
            parts.layers.push_back(cut(whole.layers[static_cast<std::size_t>(layer)]));
    }
    if (here.has_head) {
        parts.final_norm = whole.final_norm;
        if (whole.head) parts.head = select_rows(*whole.head, {here.vocab});
    }
    return transform<PackedPieces>(parts, [](PackedPieces part) {
        name_pieces(part);
        return part;
    });
}

// boxes_of(rank, part): the boxes that a rank holds of a part.
template <class BoxesOf>
Layout layout_of(const ModelShape& shape, const ParallelShape& parallel, BoxesOf boxes_of) {
    const auto whole = model_parts(shape);
    const auto ranks = static_cast<std::size_t>(parallel.ranks());
    Layout layout;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Rank number(static_cast<std::int32_t>(rank));
        transform<int>(cut_parts(whole, shape, parallel, number), [&](const PackedPieces& part) {
            for (const auto& piece : boxes_of(number, part).pieces) {
                auto& tensor = layout[piece.tensor.name];
                tensor.shape = piece.tensor.shape;
                tensor.rank_boxes.resize(ranks);
                tensor.rank_boxes[rank].push_back(piece.box);
            }
            return 0;
        });
    }
    return layout;
}

}  // namespace

RankShape rank_shape(const ModelShape& shape, const ParallelShape& parallel, Rank rank) {
    const auto place = place_of(parallel, rank);
    RankShape here{.ffn = nearly_equal_range(shape.ffn, parallel.tp, place.tp),
                   .vocab = nearly_equal_range(shape.vocab, parallel.tp, place.tp),
                   .stages = parallel.pipeline().stages_of(place.pp)};
    cut_heads(shape, parallel.tp, place.tp, here);
    here.has_embedding = here.stages.front() == 0;
    here.has_head = here.stages.back() == parallel.stages() - 1;
    return here;
}

ModelParts<PackedPieces> rank_parts(const ModelShape& shape, const ParallelShape& parallel, Rank rank) {
    return cut_parts(model_parts(shape), shape, parallel, rank);
}

Layout parameter_layout(const ModelShape& shape, const ParallelShape& parallel) {
    return layout_of(shape, parallel, [](Rank, const PackedPieces& part) { return part; });
}

Layout moment_layout(const ModelShape& shape, const ParallelShape& parallel) {
    const auto layout = parameter_layout(shape, parallel);
    if (!parallel.zero) return layout;
    const auto cells = cut_into_cells(layout);
    return layout_of(shape, parallel, [&](Rank rank, const PackedPieces& part) {
        std::vector<Range> updated;
        for (const auto& shared : shared_rows(part, cells))
            updated.push_back(updated_rows(part, shared, parallel, rank));
        return select_rows(part, updated);
    });
}

}  // namespace atl
