// Closed forms for what a schedule costs: the time of a step and the memory of each rank. They hold exactly, as the
// virtual evaluation of the tables shows; where a schedule is regular only in part, they cover that part.
//
// P ranks, m micro-batches, v chunks a rank; F, I, W seconds of one micro-batch on one *stage*, B = I + W; no transfer
// time. "bubble" is the step's time beyond a rank's own m v (F + B). Memory is in pieces: activations of one
// micro-batch on one stage, held from the start of the forward to the end of the weight gradient; v pieces are a
// micro-batch.
//
//  schedule           bubble                                             pieces on rank r
//  serial             (P-1) m (F+B)                                      1
//  gpipe              (P-1) (F+B)                                        m
//  1f1b               (P-1) (F+B)                                        min(m, P-r)
//  interleaved        (P-1) (F+B) + (v-1) g (B, or F+B if m < P)         min(v m, 2(P-1-r) + (v-1)P + 1) if g = 0
//  zero_bubble        (P-1) (F+I) - a u                                  min(m, P)
//  zero_bubble_wide   (P-1) (F+I) - b/2 min(I, 2u) - (b mod 2) u         min(m, 2P-1)
//  dualpipev          max((P-1) (F+I - min(I,W)), (P-1) (2I-W) - F)      2P+1
//  strands, P = 1     step: F + (m-1)S + B; with pairs at both ends      min(m, 2); min(m, 3)
//                     (m-2)S + 2F/gain + 2B/gain
//  strands, P > 1     step: (2m-P-1)S + 2P(F+I) + 2W                     2P+1
//                           + (P-1)(max(F,I) + max(0,W-I))
//
// g = -m mod P, what the last group of micro-batches lacks; u = min(F,I,W); a = min(m,P) - 1; b = min(m,2P-1) - 1, b/2
// rounded down; S = (F+B) / gain of a pair. With m >= P, W <= F and W <= I, zero_bubble's is the published
// (P-1)(F+I-W). ZB-H2's published (P-1)(F+I-2W) lets ranks begin the next step at different times; here a step ends for
// all ranks together, so no schedule of one chunk gets below (P-1)F. With S = F+B and W <= I, F <= I, strands' is the
// published bubble (P-1)(S+B-3W).
//
// Sources: Huang et al., GPipe, NeurIPS 2019. Narayanan et al., PipeDream, SOSP 2019, and Megatron-LM, SC 2021 (1F1B,
// interleaved). Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024. DeepSeek-AI, DeepSeek-V3, 2024 (DualPipe), its
// V form: Sea AI Lab, 2025. Forward beside backward on one rank: Wang et al., DHelix, 2024. The parts about few
// micro-batches, unequal costs and incomplete groups are ours.
#pragma once

#include <optional>

#include "program/schedule_evaluation.h"

namespace atl {

// Nothing where no closed form is known: interleaved with F > B, or with more than two chunks and an incomplete group
// behind complete ones; dualpipev and strands on several ranks with m < 2P; strands there with a memory budget, or with
// pairs so fast that S < F + I or S < 2I. `costs` must have no transfer time and no stage scale.
std::optional<double> formula_step_seconds(const ScheduleOptions& options, const WorkCosts& costs);

// [rank]; nothing for interleaved with an incomplete group, dualpipev and strands as above.
std::optional<std::vector<std::int32_t>> formula_peak_pieces(const ScheduleOptions& options);

}  // namespace atl
