// Schedules beside each other on the virtual executor, around one set-up: over the share of communication, the
// effectiveness of overlap, the pipeline's depth and the number of micro-batches, with and without barriers.
//
// Every figure is a speed-up over 1F1B without barriers at the same point. Where strands are slower than the best
// schedule that pairs nothing, the figure is below 1 in the region tables: there interleaving loses.
// Pure functions. Errors: CheckError for layers that don't fill the pipeline's stages. Cost: some ten runs a point.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/island_step.h"

namespace atl {

struct ScheduleMethod {
    std::string name;  // "w"; "w, barriers"
    ExecutionMode mode = ExecutionMode::event;
};
// 1f1b, interleaved, zb-v, dualpipev; w and strands without and with barriers.
const std::vector<ScheduleMethod>& schedule_methods();
// Without what is said of barriers.
std::string schedule_of(const ScheduleMethod& method);

struct SweepPoint {
    double communication_share = 0.4;  // of a serial rank
    double overlap_level = 0.8;        // overlap_model_of
    std::int32_t pipeline_ranks = 4;
    std::int32_t micro_batches = 16;
};

class ScheduleSweep {
  public:
    // `step` but for pipeline and micro-batches, which each point says.
    ScheduleSweep(const IslandStep& step, const MachineRates& rates) : step_(step), rates_(rates) {}

    // [method]: seconds. Infinity where a method has no schedule (interleaved on one rank) and for those not asked for:
    // `schedule` limits them to 1F1B and one more.
    std::vector<double> seconds(const SweepPoint& point, const std::string& schedule = "");
    // Best schedule without pairs / strands without barriers; above 1 interleaving wins.
    double gain(const SweepPoint& point);

  private:
    StepWork& work(const std::string& schedule, const SweepPoint& point);

    IslandStep step_;
    MachineRates rates_;
    std::map<std::tuple<std::string, std::int32_t, std::int32_t>, StepWork> works_;
};

// One swept quantity: what it is called and the points.
struct SweepAxis {
    std::string name;
    std::vector<std::pair<double, SweepPoint>> points;
};
std::vector<SweepAxis> sweep_axes(const SweepPoint& base);

struct SweepTable {
    SweepAxis axis;
    std::vector<std::vector<double>> speedups;  // [point][method], over 1F1B
};
SweepTable sweep(ScheduleSweep& sweep, const SweepAxis& axis);

// Gain of strands over two quantities: rows by columns.
struct RegionTable {
    std::string row_name;
    std::string column_name;
    std::vector<double> rows;
    std::vector<double> columns;
    std::vector<std::vector<double>> gains;
};
RegionTable overlap_region(ScheduleSweep& sweep, const SweepPoint& base);
RegionTable pipeline_region(ScheduleSweep& sweep, const SweepPoint& base);

std::string print(const SweepTable& table);
std::string print(const RegionTable& table);
std::string to_svg(const SweepTable& table);
std::string to_svg(const RegionTable& table);

}  // namespace atl
