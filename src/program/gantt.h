// Pictures of a step as time lines: one row per rank and resource, one bar per op or piece of work. The same drawing
// shows what was planned and what was measured, one below the other on one scale, so that they can be compared.
//
// Times in seconds from the step's start. Colours tell the kind of work, a dark edge the second strand; the text of a
// bar is its micro-batch. Hovering over a bar names it. SVG, no scripts, about 250 bytes a bar. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "program/schedule_evaluation.h"
#include "program/virtual_executor.h"

namespace atl {

enum class BarKind : std::uint8_t {
    forward,
    input_gradient,
    weight_gradient,
    other_compute,  // optimizer
    collective,
    message,
};

struct GanttBar {
    double start_seconds = 0;
    double end_seconds = 0;
    BarKind kind = BarKind::forward;
    std::int32_t strand = 0;
    std::string label;    // drawn where it fits
    std::string tooltip;  // on hovering
};

struct GanttRow {
    std::string label;
    std::vector<GanttBar> bars;
};

struct Gantt {
    std::string title;
    std::vector<GanttRow> rows;
};

// How long each op took in one step: planned by the virtual executor, or measured.
struct StepTiming {
    std::string label;                            // "planned", "measured"
    std::vector<std::vector<OpTime>> ops;  // [program][op]
};

// Rows of all ranks for the first timing, then for the next.
Gantt make_gantt(const std::vector<Program>& programs, const std::vector<StepTiming>& timings);
// One row a rank; strands of a pair lie one above the other.
Gantt make_gantt(const ScheduleTable& table, const ScheduleEvaluation& evaluation);

std::string to_svg(const Gantt& gantt);

}  // namespace atl
