// The steps of all ranks of a small made-up model, for what orders, checks, places or times programs: an embedding,
// layers of one product and one activation, a head with its loss; tensor, pipeline and data parallel in any mix, with
// the collectives, sends, reductions and optimizer of a real one. Shapes are legal, the model is not a good one.
#pragma once

#include <vector>

#include "program/schedule.h"

namespace atl::test {

struct PipelineStepOptions {
    PipelineShape pipeline;
    std::int32_t layers = 4;
    std::int32_t micro_batches = 2;
    std::int32_t tensor_ranks = 1;
    std::int32_t data_ranks = 1;
    std::int64_t tokens = 8;  // of a micro-batch, on each tensor-parallel rank
    std::int64_t hidden = 4;
};

// [rank], rank = (data · pipeline.ranks + pipeline) · tensor_ranks + tensor. Compute ops take 1 flop per value they
// write, so that a cost model can time them.
std::vector<StepOps> make_pipeline_steps(const PipelineStepOptions& options);

// … in a table's order.
std::vector<Program> expand_all(const std::vector<StepOps>& steps, const ScheduleTable& table);

}  // namespace atl::test
