// Schedule tables: who does which piece of pipeline work when, before anybody knows a model.
//
// A table lists, per pipeline rank, slots in the order in which the rank takes them up. A slot is one piece of work,
// or two that run interleaved as strands. Work is forward (F), backward (B), or backward cut into input gradient (I)
// and weight gradient (W), of one micro-batch on one stage. program/schedule.h expands a table into programs,
// program/schedule_evaluation.h checks and times it, program/schedule_formulas.h has the closed forms. Tables are
// pure functions of ScheduleOptions, for any number of micro-batches. Cost: O(work), strands O(work x pairs tried).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/pipeline_shape.h"

namespace atl {

enum class WorkKind : std::uint8_t { forward, backward, input_gradient, weight_gradient };

struct Work {
    WorkKind kind = WorkKind::forward;
    std::int32_t stage = 0;
    std::int32_t micro_batch = 0;
    auto operator<=>(const Work&) const = default;
};

struct Slot {
    Work first;
    std::optional<Work> second;  // of another micro-batch, interleaved with the first
    bool operator==(const Slot&) const = default;
};

struct ScheduleTable {
    PipelineShape pipeline;
    std::int32_t micro_batches = 0;
    std::vector<std::vector<Slot>> ranks;  // [pipeline rank]

    bool operator==(const ScheduleTable&) const = default;
};

enum class ScheduleKind : std::uint8_t {
    serial,            // one micro-batch after another
    gpipe,             // all forwards, then all backwards
    one_f_one_b,       // each backward as early as can be
    interleaved,       // the same with several stages a rank
    zero_bubble,       // weight gradients fill the gaps, memory of 1F1B (ZB-H1)
    zero_bubble_wide,  // … with nearly twice the memory (ZB-H2)
    dualpipev,         // both ways at once on the fold
    strands,           // the same with paired work; on one rank, forward k beside backward k - 1
};

// As in a run's configuration: "serial", "gpipe", "1f1b", "interleaved", "zero_bubble", "zero_bubble_wide",
// "dualpipev", "strands".
std::string_view name(ScheduleKind kind);
std::optional<ScheduleKind> schedule_kind_from_name(std::string_view text);

struct ScheduleOptions {
    ScheduleKind kind = ScheduleKind::serial;
    std::int32_t ranks = 1;
    std::int32_t micro_batches = 1;
    std::int32_t chunks = 2;  // stages of a rank; for interleaved alone
    // For strands alone: how many micro-batches' activations a rank may hold at once, at least 2 on one rank and
    // P + 1 on P. 0 = the least, and only forwards run beside backwards. A budget lets other neighbours run in pairs
    // too where that fits: two forwards at the start, two backwards at the end, a forward and a weight gradient.
    std::int32_t memory_micro_batches = 0;
};

PipelineShape pipeline_of(const ScheduleOptions& options);
ScheduleTable make_schedule_table(const ScheduleOptions& options);

// The text form, a head and one line a rank; work is its letter, stage and micro-batch:
//
//   schedule ranks 2 chunks 2 fold micro_batches 8
//   rank 0: F0.0 F0.1 (F0.4|B3.1) I3.2 W3.2
//
// parse_schedule_table(print(table)) == table; throws UserError naming line and word.
std::string print(const Work& work);
std::string print(const Slot& slot);
std::string print(const ScheduleTable& table);
ScheduleTable parse_schedule_table(std::string_view text);

}  // namespace atl
