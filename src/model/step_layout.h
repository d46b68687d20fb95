// What a checked configuration says about the steps of one site's island: how its ranks share the model, in which
// schedule, and what a profile of its ops holds for. Pure functions.
#pragma once

#include "config/run_config.h"
#include "model/parallel_shape.h"
#include "program/op_profile.h"
#include "program/schedule_table.h"

namespace atl {

ParallelShape parallel_shape_of(const IslandConfig& island);
// micro_batches: of one data-parallel replica.
ScheduleOptions schedule_options_of(const IslandConfig& island, std::int64_t micro_batches);
// Whether a step is planned as two halves of its one micro-batch (program/plan_step.h): on one pipeline stage, where the
// sequences of it come in two, and each half can be cut as the whole is. micro_batches: of one replica.
bool may_halve(const ModelShape& model, const ParallelShape& parallel, std::int64_t micro_batches,
               std::int64_t sequences, std::int64_t context);
// Without what only those know who run it: links and library.
ProfileFingerprint fingerprint_of(const ModelShape& model, const ParallelShape& parallel,
                                  std::int64_t micro_batch_tokens, std::int32_t threads, DType dtype);

}  // namespace atl
