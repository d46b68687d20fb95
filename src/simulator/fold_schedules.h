// Pipeline orders for comparison that a run cannot choose (program/schedule_table.h has those it can): W, ZB-V, and two
// micro-batches side by side all the way.
//
//  w              DHelix's: 1F1B over pairs on the fold. On its way down and up the pipe the forward of micro-batch k meets
//                 the backward of micro-batch k - P; the first P forwards and the last P backwards run alone. Wang et al.,
//                 "DHelix", 2024, from the order of its released code
//  zero_bubble_v  the fold with split backward in the memory of 1F1B: at most P micro-batches under way on a rank. The
//                 published order is found by a search; this one by taking what is ready: input gradients first, then
//                 forwards of the way up, then of the way down, weight gradients when nothing else is ready. Qi et al., "Zero
//                 Bubble Pipeline Parallelism", 2024
//  side_by_side   1F1B in which micro-batches 2i and 2i + 1 do everything in pairs: forward with forward, backward with
//                 backward. After Wang et al., "Wavelet", 2021; an odd last micro-batch runs alone
//
// Pure functions; the tables are legal (schedule_evaluation.h). Cost: O(work), zero_bubble_v O(work x ranks).
#pragma once

#include "program/schedule_table.h"

namespace atl {

ScheduleTable w_schedule(std::int32_t ranks, std::int32_t micro_batches);
ScheduleTable zero_bubble_v_schedule(std::int32_t ranks, std::int32_t micro_batches);
ScheduleTable side_by_side_schedule(std::int32_t ranks, std::int32_t micro_batches);

}  // namespace atl
