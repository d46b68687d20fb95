#include "island/island_options.h"

#include <charconv>

#include "core/check.h"

namespace atl {
namespace {

// The configuration has been checked: these are numbers with commas between.
std::vector<std::int64_t> stage_layers(const std::string& text) {
    std::vector<std::int64_t> layers;
    const char* end = text.data() + text.size();
    for (const char* next = text.data(); next < end; ++next)
        next = std::from_chars(next, end, layers.emplace_back()).ptr;
    return layers;
}

}  // namespace

IslandOptions island_options(const RunConfig& config, const IslandConfig& island, std::int32_t threads) {
    const auto schedule = schedule_kind_from_name(island.schedule);
    const auto mode = execution_mode_from_name(island.executor);
    ATOLL_CHECK(schedule && mode, "schedule {}, executor {}", island.schedule, island.executor);
    const PipelineShape pipeline = pipeline_of({.kind = *schedule,
                                                .ranks = static_cast<std::int32_t>(island.pp),
                                                .chunks = static_cast<std::int32_t>(island.chunks)});
    return {.model = shape_of(config.model),
            .optim = config.optim,
            .batch = {.context = config.model.context,
                      .sequences_per_step = config.train.sequences_per_step,
                      .micro_batch = config.train.micro_batch},
            .parallel = {.tp = static_cast<std::int32_t>(island.tp),
                         .pp = static_cast<std::int32_t>(island.pp),
                         .dp = static_cast<std::int32_t>(island.dp),
                         .chunks = pipeline.chunks,
                         .placement = pipeline.placement,
                         .stage_layers = stage_layers(island.stage_layers),
                         .zero = island.zero},
            .schedule = *schedule,
            .memory_micro_batches = static_cast<std::int32_t>(island.strand_micro_batches),
            .mode = *mode,
            .threads = threads,
            .collective_timeout = Milliseconds(config.timeouts.island_ms)};
}

}  // namespace atl
