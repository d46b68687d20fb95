#include "simulator/island_step.h"

#include <algorithm>

#include "core/check.h"
#include "model/training_program.h"
#include "program/schedule.h"
#include "simulator/inserted_exchanges.h"

namespace atl {
namespace {

bool communicates(const Op& op) {
    return is_collective(op.kind) || is_point_to_point(op.kind);
}

StepOps emit(const IslandStep& step, const ParallelShape& parallel, Rank rank) {
    TrainingProgramOptions options{.context = step.context / step.cp,
                                   .micro_batches = step.micro_batches,
                                   .rank = rank,
                                   .parallel = parallel,
                                   .bucket_bytes = 1'000'000'000};
    const auto part_tokens = step.context / step.cp;
    const auto key_value_bytes =
        part_tokens * 2 * step.shape.kv_heads * step.shape.head_width / step.tp * size_bytes(options.dtype);
    const auto link_of = [&](std::int32_t ranks) {
        return ranks <= step.ranks_per_node ? Resource::link_intra : Resource::link_inter;
    };
    auto ops = with_context_parallel(emit_training_step(step.shape, options),
                                     {step.cp, key_value_bytes, link_of(step.tp * step.cp)});
    return with_experts(std::move(ops), {step.ep, step.active_experts, link_of(step.tp * step.cp * step.ep)});
}

template <class Chosen>
double greatest_seconds(const StepWork& work, Chosen&& chosen) {
    double greatest = 0;
    for (std::size_t i = 0; i < work.programs.size(); ++i) {
        double sum = 0;
        for (const auto& op : work.programs[i].ops)
            if (chosen(op)) sum += work.seconds[i][static_cast<std::size_t>(op.id.value())];
        greatest = std::max(greatest, sum);
    }
    return greatest;
}

}  // namespace

double IslandStep::tokens_per_rank() const {
    return static_cast<double>(context) * micro_batches / (tp * pp * cp);
}

std::vector<StepOps> emit_island_step(const IslandStep& step, const PipelineShape& pipeline) {
    ATOLL_CHECK_EQ(pipeline.ranks, step.pp);
    ATOLL_CHECK_EQ(step.context % step.cp, 0, "tokens of a part");
    const ParallelShape parallel{.tp = step.tp,
                                 .pp = step.pp,
                                 .dp = step.dp,
                                 .chunks = pipeline.chunks,
                                 .placement = pipeline.placement};
    std::vector<StepOps> ops;
    for (std::int32_t rank = 0; rank < parallel.ranks(); ++rank) {
        const auto place = place_of(parallel, Rank(rank));
        if (step.all_ranks || (place.tp == 0 && place.dp == 0))
            ops.push_back(emit(step, parallel, Rank(rank)));
    }
    return ops;
}

StepWork make_step_work(const std::vector<StepOps>& ops, const ScheduleTable& table,
                        const MachineRates& rates) {
    StepWork work;
    for (const StepOps& rank : ops) {
        work.programs.push_back(expand(rank, table));
        work.seconds.push_back(predicted_seconds(work.programs.back(), rates));
    }
    return work;
}

StepWork make_step_work(const IslandStep& step, const ScheduleTable& table, const MachineRates& rates) {
    return make_step_work(emit_island_step(step, table.pipeline), table, rates);
}

double compute_seconds(const StepWork& work) {
    return work.compute_factor * greatest_seconds(work, [](const Op& op) { return !communicates(op); });
}

double communication_seconds(const StepWork& work) {
    return work.link_factor * greatest_seconds(work, communicates);
}

double step_seconds(StepWork& work, ExecutionMode mode, const OverlapModel& overlap) {
    auto seconds = work.seconds;
    for (std::size_t i = 0; i < work.programs.size(); ++i)
        for (const auto& op : work.programs[i].ops)
            seconds[i][static_cast<std::size_t>(op.id.value())] *=
                communicates(op) ? work.link_factor : work.compute_factor;
    const auto executor = work.executors.try_emplace(mode, work.programs, mode).first;
    return executor->second.run(seconds, overlap).step_seconds;
}

void set_communication_share(StepWork& work, double share) {
    ATOLL_CHECK(share >= 0 && share < 1, "share {}", share);
    // From the links as they are, whatever share was set before.
    work.link_factor = share / (1 - share) * compute_seconds(work) / greatest_seconds(work, communicates);
}

OverlapModel overlap_model_of(double level) {
    constexpr double kAttentionLess = 0.15, kTwoLinks = 0.97;
    std::vector<OpClass> links;
    for (const auto family : {OpFamily::gather, OpFamily::reduce})
        for (const auto resource : {Resource::link_intra, Resource::link_inter})
            links.push_back({family, resource});
    links.push_back({OpFamily::message, Resource::send});
    links.push_back({OpFamily::message, Resource::receive});
    std::vector<PairSlowdown> pairs;
    for (const auto family :
         {OpFamily::matmul, OpFamily::attention, OpFamily::elementwise, OpFamily::optimizer}) {
        const double effectiveness = level - (family == OpFamily::attention ? kAttentionLess : 0);
        for (const auto& link : links)
            pairs.push_back({{family, Resource::compute}, link, 2 - effectiveness, 2 - effectiveness});
    }
    for (const auto& first : links)
        for (const auto& second : links)
            if (first.resource != second.resource)
                pairs.push_back({first, second, 2 - kTwoLinks, 2 - kTwoLinks});
    return OverlapModel(pairs);
}

}  // namespace atl
