#include "program/schedule_table.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "program/schedule_generators.h"

namespace atl {
namespace {

constexpr std::array<std::string_view, 8> kKindNames = {
    "serial", "gpipe", "1f1b", "interleaved", "zero_bubble", "zero_bubble_wide", "dualpipev", "strands"};

}  // namespace

std::string_view name(ScheduleKind kind) {
    return kKindNames.at(static_cast<std::size_t>(kind));
}

std::optional<ScheduleKind> schedule_kind_from_name(std::string_view text) {
    const auto found = std::ranges::find(kKindNames, text);
    if (found == kKindNames.end()) return std::nullopt;
    return static_cast<ScheduleKind>(found - kKindNames.begin());
}

PipelineShape pipeline_of(const ScheduleOptions& options) {
    switch (options.kind) {
        case ScheduleKind::interleaved:
            return {options.ranks, options.chunks, StagePlacement::round_robin};
        case ScheduleKind::dualpipev:
            return {options.ranks, 2, StagePlacement::fold};
        case ScheduleKind::strands:
            if (options.ranks > 1) return {options.ranks, 2, StagePlacement::fold};
            break;
        default:
            break;
    }
    return {options.ranks, 1, StagePlacement::round_robin};
}

ScheduleTable make_schedule_table(const ScheduleOptions& options) {
    ATOLL_CHECK(options.ranks > 0 && options.micro_batches > 0 && options.chunks > 0,
                "{} ranks, {} micro-batches, {} chunks", options.ranks, options.micro_batches,
                options.chunks);
    ScheduleTable table{pipeline_of(options), options.micro_batches, {}};
    switch (options.kind) {
        case ScheduleKind::serial:
            table.ranks = serial_slots(table.pipeline, options.micro_batches);
            break;
        case ScheduleKind::gpipe:
            table.ranks = gpipe_slots(table.pipeline, options.micro_batches);
            break;
        case ScheduleKind::one_f_one_b:
            table.ranks = one_f_one_b_slots(options.ranks, options.micro_batches);
            break;
        case ScheduleKind::interleaved:
            table.ranks = interleaved_slots(table.pipeline, options.micro_batches);
            break;
        case ScheduleKind::zero_bubble:
        case ScheduleKind::zero_bubble_wide: {
            const std::int32_t depth = options.kind == ScheduleKind::zero_bubble ? 1 : 2;
            table.ranks = zero_bubble_slots(options.ranks, options.micro_batches, depth);
            break;
        }
        case ScheduleKind::dualpipev:
            table.ranks = without_pairs(dualpipev_slots(options.ranks, options.micro_batches));
            break;
        case ScheduleKind::strands:
            table.ranks = strands_slots(table.pipeline, options.micro_batches, options.memory_micro_batches);
            break;
    }
    return table;
}

}  // namespace atl
