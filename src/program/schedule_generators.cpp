#include "program/schedule_generators.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

using enum WorkKind;

std::vector<Slot>& of_rank(RankSlots& slots, std::int32_t rank) {
    return slots[static_cast<std::size_t>(rank)];
}

}  // namespace

RankSlots serial_slots(const PipelineShape& pipeline, std::int32_t micro_batches) {
    RankSlots slots(static_cast<std::size_t>(pipeline.ranks));
    for (std::int32_t k = 0; k < micro_batches; ++k) {
        for (std::int32_t stage = 0; stage < pipeline.stages(); ++stage)
            of_rank(slots, pipeline.rank_of(stage)).push_back({{forward, stage, k}, {}});
        for (std::int32_t stage = pipeline.stages() - 1; stage >= 0; --stage)
            of_rank(slots, pipeline.rank_of(stage)).push_back({{backward, stage, k}, {}});
    }
    return slots;
}

RankSlots gpipe_slots(const PipelineShape& pipeline, std::int32_t micro_batches) {
    RankSlots slots(static_cast<std::size_t>(pipeline.ranks));
    for (std::int32_t k = 0; k < micro_batches; ++k)
        for (std::int32_t stage = 0; stage < pipeline.stages(); ++stage)
            of_rank(slots, pipeline.rank_of(stage)).push_back({{forward, stage, k}, {}});
    for (std::int32_t k = 0; k < micro_batches; ++k)
        for (std::int32_t stage = pipeline.stages() - 1; stage >= 0; --stage)
            of_rank(slots, pipeline.rank_of(stage)).push_back({{backward, stage, k}, {}});
    return slots;
}

RankSlots one_f_one_b_slots(std::int32_t ranks, std::int32_t micro_batches) {
    RankSlots slots(static_cast<std::size_t>(ranks));
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto& mine = of_rank(slots, rank);
        const auto ahead = std::min(ranks - 1 - rank, micro_batches);
        for (std::int32_t i = 0; i < micro_batches + ahead; ++i) {
            if (i < micro_batches) mine.push_back({{forward, rank, i}, {}});
            if (i >= ahead) mine.push_back({{backward, rank, i - ahead}, {}});
        }
    }
    return slots;
}

// Micro-batches go in groups of P, each group through all stages of the rank before the next one; backward likewise
// from the last stage. A rank runs ahead of its own backwards by the forwards that the ranks behind it need.
RankSlots interleaved_slots(const PipelineShape& pipeline, std::int32_t micro_batches) {
    const auto ranks = pipeline.ranks, chunks = pipeline.chunks;
    const auto whole = (micro_batches + ranks - 1) / ranks * ranks;
    const auto total = whole * chunks;
    const auto place = [&](std::int32_t index) {  // chunk and micro-batch
        const auto in_group = index % (ranks * chunks);
        return std::pair(in_group / ranks, index / (ranks * chunks) * ranks + in_group % ranks);
    };
    RankSlots slots(static_cast<std::size_t>(ranks));
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto& mine = of_rank(slots, rank);
        const auto ahead = std::min(2 * (ranks - 1 - rank) + (chunks - 1) * ranks, total);
        for (std::int32_t i = 0; i < total + ahead; ++i) {
            if (i < total) {
                const auto [chunk, k] = place(i);
                mine.push_back({{forward, chunk * ranks + rank, k}, {}});
            }
            if (i >= ahead) {
                const auto [chunk, k] = place(i - ahead);
                mine.push_back({{backward, (chunks - 1 - chunk) * ranks + rank, k}, {}});
            }
        }
    }
    return without_micro_batches_from(micro_batches, slots);
}

// As 1F1B, but a rank holds back its first weight gradients: `depth` per rank before it, so that all ranks hold the
// same number of micro-batches. They are made up for at the end, where 1F1B waits.
RankSlots zero_bubble_slots(std::int32_t ranks, std::int32_t micro_batches, std::int32_t depth) {
    RankSlots slots(static_cast<std::size_t>(ranks));
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        auto& mine = of_rank(slots, rank);
        const auto ahead = std::min(depth * (ranks - 1 - rank), micro_batches);
        const auto held_back = std::min(depth * rank, micro_batches);
        for (std::int32_t i = 0; i < micro_batches + ahead + held_back; ++i) {
            if (i < micro_batches) mine.push_back({{forward, rank, i}, {}});
            if (i >= ahead && i < micro_batches + ahead)
                mine.push_back({{input_gradient, rank, i - ahead}, {}});
            if (i >= ahead + held_back) mine.push_back({{weight_gradient, rank, i - ahead - held_back}, {}});
        }
    }
    return slots;
}

RankSlots without_pairs(const RankSlots& slots) {
    RankSlots single(slots.size());
    for (std::size_t rank = 0; rank < slots.size(); ++rank)
        for (const auto& slot : slots[rank]) {
            single[rank].push_back({slot.first, {}});
            if (slot.second) single[rank].push_back({*slot.second, {}});
        }
    return single;
}

RankSlots without_micro_batches_from(std::int32_t micro_batches, const RankSlots& slots) {
    RankSlots kept(slots.size());
    for (std::size_t rank = 0; rank < slots.size(); ++rank)
        for (auto slot : slots[rank]) {
            if (slot.second && slot.second->micro_batch >= micro_batches) slot.second.reset();
            if (slot.first.micro_batch < micro_batches)
                kept[rank].push_back(slot);
            else if (slot.second)
                kept[rank].push_back({*slot.second, {}});
        }
    return kept;
}

}  // namespace atl
