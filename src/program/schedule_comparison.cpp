#include "program/schedule_comparison.h"

#include <fmt/ranges.h>

#include <cmath>

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
    ScheduleFigures figures{std::string(name(options.kind)), result.step_seconds, result.bubble_share(), {}};
    for (const auto pieces : result.peak_pieces) figures.peaks.push_back(pieces / chunks);
    return figures;
}

ScheduleFigures measure(const std::string& name, const std::vector<Placement>& placements,
                        const VirtualRun& run) {
    ATOLL_CHECK_EQ(placements.size(), run.busy_seconds.size());
    ScheduleFigures figures{name, run.step_seconds, 0, {}};
    double busy_seconds = 0;
    for (const auto& busy : run.busy_seconds)
        busy_seconds += busy[static_cast<std::size_t>(Resource::compute)];
    figures.bubble_share = 1 - busy_seconds / (run.step_seconds * static_cast<double>(placements.size()));
    for (const auto& placement : placements) {
        std::int64_t bytes = 0;
        for (const auto& [arena, arena_bytes] : placement.arena_bytes)
            if (arena.role == Role::activation) bytes += arena_bytes;
        figures.peaks.push_back(std::round(static_cast<double>(bytes) / 1e4) / 1e2);
    }
    return figures;
}

std::string print(const std::vector<ScheduleFigures>& schedules, const std::string& peaks) {
    auto text = fmt::format("{:<17}{:>10}{:>8}{:>10}  peak {} by rank\n", "schedule", "step ms", "ratio",
                            "bubble %", peaks);
    for (const auto& figures : schedules)
        text += fmt::format("{:<17}{:>10.3f}{:>8.2f}{:>10.1f}  {}\n", figures.name,
                            figures.step_seconds * 1e3, figures.step_seconds / schedules.front().step_seconds,
                            100 * figures.bubble_share, fmt::join(figures.peaks, " "));
    return text;
}

}  // namespace atl
