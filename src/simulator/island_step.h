// A training step of one island of many ranks, on the virtual executor: the programs that a run would make, with the
// seconds of a cluster's rates.
//
// One program per pipeline rank, that of its first tensor-, context- and data-parallel rank: the others do the same at
// the same time, so collectives inside their groups never wait. `all_ranks` makes every rank's program instead.
// Compute and memory are those of the model's ops (src/model), communication theirs and inserted_exchanges.h's.
//
// Seconds. Cost: O(ops); emission is the larger part, and what doesn't depend on times is made once.
#pragma once

#include <map>
#include <vector>

#include "model/model_shape.h"
#include "program/execution_mode.h"
#include "program/overlap_model.h"
#include "program/schedule_table.h"
#include "program/step_ops.h"
#include "program/virtual_executor.h"
#include "simulator/cluster.h"

namespace atl {

struct IslandStep {
    ModelShape shape;
    std::int32_t tp = 1;
    std::int32_t pp = 1;
    std::int32_t cp = 1;
    std::int32_t dp = 1;
    std::int32_t ep = 1;
    std::int32_t active_experts = 1;
    std::int64_t context = 0;  // tokens of a sequence, over all cp ranks; a micro-batch is one sequence
    std::int32_t micro_batches = 1;
    bool all_ranks = false;
    std::int32_t ranks_per_node =
        8;  // groups that fit in one exchange by its links, tensor-parallel ranks first

    // Tokens of a step whose work one accelerator does.
    double tokens_per_rank() const;
};

// What has to be done, alone and one thing after another.
struct StepWork {
    std::vector<Program> programs;
    std::vector<std::vector<double>> seconds;  // [program][op]
    double link_factor = 1;                    // by which all communication takes longer than that
    double compute_factor = 1;                 // … and everything else
    // Made when first asked for: the programs stay as they are from then on.
    std::map<ExecutionMode, VirtualExecutor> executors;
};
// One emission serves all schedules of the same pipeline.
std::vector<StepOps> emit_island_step(const IslandStep& step, const PipelineShape& pipeline);  // [program]
StepWork make_step_work(const std::vector<StepOps>& ops, const ScheduleTable& table,
                        const MachineRates& rates);
StepWork make_step_work(const IslandStep& step, const ScheduleTable& table, const MachineRates& rates);

// Seconds of the rank with most of it.
double compute_seconds(const StepWork& work);
double communication_seconds(const StepWork& work);

double step_seconds(StepWork& work, ExecutionMode mode, const OverlapModel& overlap = {});

// The work's step with the share of communication given, of what one rank computes and communicates.
void set_communication_share(StepWork& work, double share);

// How well communication hides behind computation, by the family of the compute op: two ops that run at once take
// a + b - e min(a, b). One level for a cluster; attention hides 0.15 less, two links at once 0.97, two compute ops
// nothing. The shape is the reference notes' (profiled ranges given second-hand for DHelix), the level is fitted.
OverlapModel overlap_model_of(double level);

}  // namespace atl
