// Published figures of compute utilization over slow links, beside what the simulator gives for the same set-ups.
//
// Sources: Douillard et al., "Streaming DiLoCo" (arXiv 2501.18512): Gbit/s needed for 50, 80, 90, 95 and 99 %
// utilization, two sites, 16 bits unless FP4, and hours of a 1B run at 1 Gbit/s; a simulation of theirs whose grid of
// rates has steps of 1.2. Charles et al., "Scaling Laws for DiLoCo" (arXiv 2503.09799): the same for other H and sizes.
// Utilization measured with shaped TCP, 30.8 M parameters in fp32 on four sites (reference notes, marked measured).
//
// What they leave open is derived from one column of a group and says so: the others are the check.
// Pure functions. Cost: required_rates some seconds, as each entry is a search.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "simulator/outer_loop.h"

namespace atl {

inline constexpr std::array<double, 5> kUtilizationTargets = {0.50, 0.80, 0.90, 0.95, 0.99};

struct RequiredRateRow {
    std::string source;
    std::string name;
    double parameters = 0;
    double bits = 16;  // of a parameter
    OuterLoop loop;    // without exchange_seconds
    bool derived_step_seconds = false;  // from the 50 % column of the model's rows
    std::array<double, 5> published_gbit_per_second{};
    std::array<double, 5> simulated_gbit_per_second{};

    // Simulated / published, of one target.
    double ratio(std::size_t target) const {
        return simulated_gbit_per_second[target] / published_gbit_per_second[target];
    }
};
std::vector<RequiredRateRow> required_rates();

struct RunHoursRow {
    std::string name;
    double published_hours = 0;
    double simulated_hours = 0;
};
std::vector<RunHoursRow> run_hours();

struct MeasuredUtilizationRow {
    std::int32_t inner_steps = 1;
    double gbit_per_second = 0;
    double measured = 0;  // share
    double simulated = 0;
    bool calibrates = false;  // its group gave the step's time
};
std::vector<MeasuredUtilizationRow> measured_utilization();

// How far the simulator is off, over all entries that calibrate nothing.
struct UtilizationErrors {
    double least_ratio = 0;  // of required rates
    double greatest_ratio = 0;
    double mean_ratio_error = 0;       // of |ratio - 1|
    double greatest_hours_error = 0;   // of |simulated / published - 1|
    double greatest_points_error = 0;  // of measured utilization, in points of 100
};
UtilizationErrors errors_of(const std::vector<RequiredRateRow>& rates, const std::vector<RunHoursRow>& hours,
                            const std::vector<MeasuredUtilizationRow>& measured);

// What the simulator is held to, by a test: a required rate within these factors of the published one, whose own grid
// has steps of 1.2; hours within 5 %; a measured utilization within 6 points.
inline constexpr double kLeastRateRatio = 0.8, kGreatestRateRatio = 1.25;
inline constexpr double kGreatestHoursError = 0.05, kGreatestPointsError = 6;

// Tables for people.
std::string print(const std::vector<RequiredRateRow>& rows);
std::string print(const std::vector<RunHoursRow>& rows);
std::string print(const std::vector<MeasuredUtilizationRow>& rows);
std::string print(const UtilizationErrors& errors);

}  // namespace atl
