#include "program/schedule_comparison.h"

#include <fmt/ranges.h>

#include "core/check.h"

namespace atl {

ScheduleFigures measure(const ScheduleOptions& options, const WorkCosts& costs) {
    ATOLL_CHECK(costs.stage_scale.empty(), "costs of whole ranks know no stages");
    const auto table = make_schedule_table(options);
    const double chunks = table.pipeline.chunks;
    auto per_stage = costs;
    per_stage.forward_seconds /= chunks;
    per_stage.input_gradient_seconds /= chunks;
    per_stage.weight_gradient_seconds /= chunks;
    const auto result = evaluate(table, per_stage);
    ScheduleFigures figures{options, result.step_seconds, result.bubble_share(), {}};
    for (const auto pieces : result.peak_pieces) figures.peak_micro_batches.push_back(pieces / chunks);
    return figures;
}

std::string print(const std::vector<ScheduleFigures>& schedules) {
    std::string text = "schedule          step ms   ratio  bubble %  peak micro-batches by rank\n";
    for (const auto& figures : schedules)
        text += fmt::format("{:<16}{:>9.3f}{:>8.2f}{:>10.1f}  {}\n", name(figures.options.kind),
                            figures.step_seconds * 1e3, figures.step_seconds / schedules.front().step_seconds,
                            100 * figures.bubble_share, fmt::join(figures.peak_micro_batches, " "));
    return text;
}

}  // namespace atl
