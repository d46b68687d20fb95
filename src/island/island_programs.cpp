#include "island/island_programs.h"

#include <torch/version.h>

#include "core/check.h"
#include "engine/executor.h"
#include "model/step_layout.h"
#include "model/training_program.h"
#include "program/plan_strands.h"
#include "program/schedule.h"

namespace atl {
namespace {

decltype(TrainingProgramOptions::optimizer) optimizer_attributes(const OptimConfig& optim) {
    if (optim.kind == OptimKind::sgd) return SgdAttributes{optim.weight_decay, optim.grad_clip};
    const AdamwAttributes adamw{optim.beta1, optim.beta2, optim.epsilon, optim.weight_decay, optim.grad_clip};
    if (optim.kind == OptimKind::adamw) return adamw;
    return MuonOptimizer{{optim.momentum, optim.weight_decay, optim.grad_clip}, adamw};
}

ScratchRule scratch_rule(std::int32_t threads) {
    return [threads](const Program& program, const Op& op) { return op_scratch_bytes(program, op, threads); };
}

}  // namespace

StepOps training_step(const IslandOptions& options, Rank rank) {
    const ParallelShape& parallel = options.parallel;
    const auto micro_batches = static_cast<std::int32_t>(options.batch.micro_batches() / parallel.dp);
    return emit_training_step(options.model, {.sequences = options.batch.micro_batch,
                                              .context = options.batch.context,
                                              .micro_batches = micro_batches,
                                              .dtype = options.dtype,
                                              .rank = rank,
                                              .parallel = parallel,
                                              .optimizer = optimizer_attributes(options.optim),
                                              .scratch_bytes = scratch_rule(options.threads)});
}

std::vector<StepOps> training_steps(const IslandOptions& options) {
    std::vector<StepOps> steps;
    for (std::int32_t rank = 0; rank < options.parallel.ranks(); ++rank)
        steps.push_back(training_step(options, Rank(rank)));
    return steps;
}

ScheduleTable training_table(const IslandOptions& options) {
    const ParallelShape& parallel = options.parallel;
    const ScheduleOptions schedule{
        .kind = options.schedule,
        .ranks = parallel.pp,
        .micro_batches = static_cast<std::int32_t>(options.batch.micro_batches() / parallel.dp),
        .chunks = parallel.chunks,
        .memory_micro_batches = options.memory_micro_batches};
    ATOLL_CHECK(pipeline_of(schedule) == parallel.pipeline(),
                "the model is cut into other stages than {} runs", name(options.schedule));
    return make_schedule_table(schedule);
}

ProfileFingerprint step_fingerprint(const IslandOptions& options) {
    auto fingerprint = fingerprint_of(options.model, options.parallel, options.batch.micro_batch_tokens(),
                                      options.threads, options.dtype);
    fingerprint.library_version = TORCH_VERSION;
    return fingerprint;
}

Program training_program(const IslandOptions& options, Rank rank) {
    const StepOps step = training_step(options, rank);
    if (options.schedule == ScheduleKind::serial && options.parallel.pp == 1) return serial_schedule(step);
    if (options.plan) return planned_program(step, training_table(options), *options.plan);
    return expand(step, training_table(options));
}

Program evaluation_program(const IslandOptions& options, Rank rank) {
    return make_evaluation_program(options.model, {.sequences = options.batch.micro_batch,
                                                   .context = options.batch.context,
                                                   .dtype = options.dtype,
                                                   .rank = rank,
                                                   .parallel = options.parallel,
                                                   .scratch_bytes = scratch_rule(options.threads)});
}

std::map<std::string, std::vector<Rank>> island_groups(const IslandOptions& options, Rank rank) {
    auto groups = evaluation_program(options, rank).groups;
    if (options.purpose == IslandPurpose::training) groups.merge(training_program(options, rank).groups);
    return groups;
}

bool has_stages(const ParallelShape& parallel) {
    return parallel.pp > 1;
}

}  // namespace atl
