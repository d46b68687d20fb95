#include "island/island_options.h"

#include "core/check.h"
#include "model/step_layout.h"

namespace atl {

IslandOptions island_options(const RunConfig& config, const IslandConfig& island, std::int32_t threads) {
    const auto schedule = schedule_kind_from_name(island.schedule);
    const auto mode = execution_mode_from_name(island.executor);
    ATOLL_CHECK(schedule && mode, "schedule {}, executor {}", island.schedule, island.executor);
    return {.model = shape_of(config.model),
            .optim = config.optim,
            .batch = {.context = config.model.context,
                      .sequences_per_step = config.train.sequences_per_step,
                      .micro_batch = config.train.micro_batch},
            .parallel = parallel_shape_of(island),
            .schedule = *schedule,
            .memory_micro_batches = static_cast<std::int32_t>(island.strand_micro_batches),
            .strand_order =
                island.strand_order == "alternating" ? StrandOrder::alternating : StrandOrder::planned,
            .plan_file = island.plan,
            .measures_profile = island.profile == kMeasureProfile,
            .profile_file = island.names_profile_file() ? island.profile : "",
            .plan = {},
            .mode = *mode,
            .threads = threads,
            .collective_timeout = Milliseconds(config.timeouts.island_ms)};
}

}  // namespace atl
