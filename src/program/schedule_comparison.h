// Schedules beside each other: time, bubble and memory of each on the same ranks with the same work, from the virtual
// evaluation of their tables.
#pragma once

#include "program/schedule_evaluation.h"

namespace atl {

struct ScheduleFigures {
    ScheduleOptions options;
    double step_seconds = 0;
    double bubble_share = 0;
    std::vector<double> peak_micro_batches;  // [rank]: pieces by chunks a rank
};

// `costs` are those of a micro-batch on all that one rank holds; a schedule with several chunks a rank does a part of
// it in each. Transfers cost the same in all.
ScheduleFigures measure(const ScheduleOptions& options, const WorkCosts& costs);

// A table of text, one line a schedule, with the time relative to the first one's:
//
//   schedule          step ms   ratio  bubble %  peak micro-batches by rank
//   1f1b              123.000    1.00      20.0  4 3 2 1
std::string print(const std::vector<ScheduleFigures>& schedules);

}  // namespace atl
