// Communication that the model's emitter has no layout for, put into a step's ops: context parallelism and experts.
//
// context parallel: ranks of a "cp" group hold parts of each sequence and pass keys and values round a ring (Liu et al.,
// Ring Attention, 2023). The step is one part's. Attention becomes as many ops as there are parts, each beside the hop
// that brings the next part's keys and values; so does attention_backward, where gradients of keys and values travel a
// hop behind it.
// experts: each token goes to `active` of the experts, which lie on the ranks of an "ep" group, and comes back: one
// exchange before and one behind the feed-forward block, in both directions. The load is taken to be even.
//
// An exchange is an all_reduce with the bytes of what really travels: right for a clock, wrong for numbers.
// Pure functions. Cost: O(ops).
#pragma once

#include "program/step_ops.h"

namespace atl {

struct ContextParallel {
    std::int32_t ranks = 1;
    std::int64_t key_value_bytes = 0;  // of one layer, micro-batch and part on one rank
    Resource link = Resource::link_inter;
};
StepOps with_context_parallel(StepOps step, const ContextParallel& context);

struct ExpertParallel {
    std::int32_t ranks = 1;
    std::int32_t active = 1;  // experts of a token
    Resource link = Resource::link_inter;
};
StepOps with_experts(StepOps step, const ExpertParallel& experts);

}  // namespace atl
