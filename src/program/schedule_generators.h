// The generators behind make_schedule_table: each gives the slots of all pipeline ranks, [rank][slot].
#pragma once

#include "program/schedule_table.h"

namespace atl {

using RankSlots = std::vector<std::vector<Slot>>;

RankSlots serial_slots(const PipelineShape& pipeline, std::int32_t micro_batches);
RankSlots gpipe_slots(const PipelineShape& pipeline, std::int32_t micro_batches);
RankSlots one_f_one_b_slots(std::int32_t ranks, std::int32_t micro_batches);
RankSlots interleaved_slots(const PipelineShape& pipeline, std::int32_t micro_batches);
// `depth` 1 is ZB-H1: memory of 1F1B's first rank on every rank. 2 is ZB-H2: 2 P - 1.
RankSlots zero_bubble_slots(std::int32_t ranks, std::int32_t micro_batches, std::int32_t depth);
// Forward and backward that DualPipeV overlaps share a slot, the forward first.
RankSlots dualpipev_slots(std::int32_t ranks, std::int32_t micro_batches);
RankSlots strands_slots(const PipelineShape& pipeline, std::int32_t micro_batches,
                        std::int32_t memory_micro_batches);

// The same work one piece at a time, first and then second.
RankSlots without_pairs(const RankSlots& slots);
// Without micro-batches from `micro_batches` on. What is left of a legal order is legal: it has fewer pieces that wait
// for one another. So a generator that needs some number of micro-batches makes up the missing ones.
RankSlots without_micro_batches_from(std::int32_t micro_batches, const RankSlots& slots);

}  // namespace atl
