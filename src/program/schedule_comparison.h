// Schedules beside each other: time, bubble and memory of each, for one kind of work on the same ranks; from the virtual
// evaluation of tables, or from programs on the virtual executor with their placements.
#pragma once

#include <string>
#include <vector>

#include "program/placement.h"
#include "program/schedule_evaluation.h"
#include "program/virtual_executor.h"

namespace atl {

struct ScheduleFigures {
    std::string name;
    double step_seconds = 0;
    double bubble_share = 0;    // of the time of all ranks' compute
    std::vector<double> peaks;  // [rank]: of activations
};

// `costs` are those of a micro-batch on all that one rank holds; a schedule with several chunks a rank does a part of
// it in each. Transfers cost the same in all. Peaks in micro-batches: pieces by chunks.
ScheduleFigures measure(const ScheduleOptions& options, const WorkCosts& costs);

// Of all ranks' programs. Peaks in MB, of the activations' arenas.
ScheduleFigures measure(const std::string& name, const std::vector<Placement>& placements,
                        const VirtualRun& run);

// A table of text, one line a schedule, with the time relative to the first one's. `peaks` says what they are:
//
//   schedule            step ms   ratio  bubble %  peak micro-batches by rank
//   1f1b                123.000    1.00      20.0  4 3 2 1
std::string print(const std::vector<ScheduleFigures>& schedules, const std::string& peaks);

}  // namespace atl
