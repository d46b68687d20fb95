#include "simulator/published_utilization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/statistics.h"

namespace atl {
namespace {

constexpr double kGbit = 1e9;

// What an all-reduce moves per site and parameter, relative to the parameter.
double traffic_share(double sites) {
    return 2 * (sites - 1) / sites;
}

struct Model {
    const char* name;
    double parameters;
    std::int32_t layers;
    double step_seconds;
    std::int32_t fragments;  // of three layers
};
constexpr Model k1B{"1B", 1e9, 24, 0.1, 8};
constexpr Model k10B{"10B", 10e9, 48, 0.8, 16};
constexpr Model k100B{"100B", 100e9, 108, 4.9, 36};

struct Method {
    const char* name;
    std::int32_t inner_steps;
    bool streams;
    std::int32_t overlap_steps;
    double bits;
};
constexpr Method kDataParallel{"data parallel", 1, false, 0, 16};
constexpr Method kDiloco{"DiLoCo", 100, false, 0, 16};
constexpr Method kStreaming{"streaming", 100, true, 0, 16};
constexpr Method kOverlapped{"+ overlap", 100, true, 1, 16};
constexpr Method kFp4{"+ FP4", 100, true, 1, 4};

RequiredRateRow row_of(const Model& model, const Method& method, std::array<double, 5> published) {
    RequiredRateRow row{.source = "Streaming DiLoCo",
                        .name = fmt::format("{} {}", model.name, method.name),
                        .parameters = model.parameters,
                        .bits = method.bits,
                        .published_gbit_per_second = published};
    row.loop = {.schedule = {method.inner_steps, method.streams ? model.fragments : 1, method.overlap_steps},
                .layers = model.layers,
                .step_seconds = {model.step_seconds},
                .by_layer = true};
    return row;
}

std::vector<RequiredRateRow> streaming_rows() {
    return {
        row_of(k1B, kDataParallel, {86.8, 152.6, 184.2, 222.3, 569}),
        row_of(k1B, kDiloco, {1.4, 6.2, 13.3, 23.3, 86.8}),
        row_of(k1B, kStreaming, {1.4, 5.2, 9.1, 16, 28.1}),
        row_of(k1B, kOverlapped, {1.4, 4.3, 6.2, 9.1, 11}),
        row_of(k1B, kFp4, {0.4, 0.9, 1.7, 2.0, 3.0}),
        row_of(k10B, kDataParallel, {104.8, 222, 222, 268, 472}),
        row_of(k10B, kDiloco, {1.7, 7.5, 16, 33.9, 104.8}),
        row_of(k10B, kStreaming, {1.7, 5.2, 9.1, 13.3, 19.3}),
        row_of(k10B, kOverlapped, {1.7, 3.6, 5.2, 6.2, 7.5}),
        row_of(k10B, kFp4, {0.4, 0.9, 1.4, 1.4, 1.7}),
        row_of(k100B, kDataParallel, {184, 324, 391, 391, 472}),
        row_of(k100B, kDiloco, {3, 11, 23.3, 49.4, 184.2}),
        row_of(k100B, kStreaming, {2.4, 6.2, 9.1, 11, 19.3}),
        row_of(k100B, kOverlapped, {1.7, 3.6, 4.3, 5.2, 5.2}),
        row_of(k100B, kFp4, {0.5, 0.9, 1.1, 1.1, 1.4}),
    };
}

// Step times of these are not in our notes; derive_step_seconds finds one per model.
std::vector<RequiredRateRow> scaling_laws_rows() {
    struct Entry {
        const char* model;
        double parameters;
        std::int32_t layers;
        std::int32_t inner_steps;
        std::array<double, 5> published;
    };
    const std::vector<Entry> entries = {
        {"10B", 10e9, 48, 1, {104.8, 184.2, 222.3, 222.3, 390.7}},
        {"10B", 10e9, 48, 10, {16, 49.4, 86.8, 152.6, 222.3}},
        {"10B", 10e9, 48, 50, {3, 11, 23.3, 41, 126.5}},
        {"10B", 10e9, 48, 100, {1.4, 6.2, 13.3, 23.3, 86.8}},
        {"10B", 10e9, 48, 300, {0.5, 2, 4.3, 9.1, 41}},
        {"405B", 405e9, 126, 100, {2, 7.5, 16, 33.9, 126.5}},
        {"671B", 671e9, 61, 100, {4.3, 16, 41, 72, 268.3}},
    };
    std::vector<RequiredRateRow> rows;
    for (const auto& entry : entries) {
        RequiredRateRow row{.source = "Scaling Laws",
                            .name = fmt::format("{} H {}", entry.model, entry.inner_steps),
                            .parameters = entry.parameters,
                            .derived_step_seconds = true,
                            .published_gbit_per_second = entry.published};
        row.loop = {.schedule = {entry.inner_steps, 1, 0},
                    .layers = entry.layers,
                    .step_seconds = {1},
                    .by_layer = true};
        rows.push_back(row);
    }
    return rows;
}

// Scales each model's time of a step so that its 50 % column is right on average: a step twice as long needs half the
// rate.
void derive_step_seconds(std::vector<RequiredRateRow>& rows) {
    std::map<double, std::vector<RequiredRateRow*>> models;  // by parameters
    for (auto& row : rows)
        if (row.derived_step_seconds) models[row.parameters].push_back(&row);
    for (const auto& [parameters, of_model] : models) {
        double factor = 0;
        for (const auto* row : of_model) factor += row->ratio(0) / static_cast<double>(of_model.size());
        for (auto* row : of_model) {
            row->loop.step_seconds.front() *= factor;
            for (auto& rate : row->simulated_gbit_per_second) rate /= factor;
        }
    }
}

double exchange_seconds(double parameters, double bits, double sites, double gbit_per_second) {
    return traffic_share(sites) * parameters * bits / (gbit_per_second * kGbit);
}

template <class Visit>
void for_each_checked_rate(const std::vector<RequiredRateRow>& rows, Visit&& visit) {
    for (const auto& row : rows)
        for (std::size_t target = 0; target < kUtilizationTargets.size(); ++target)
            if (!row.derived_step_seconds || target > 0) visit(row.ratio(target));
}

}  // namespace

std::vector<RequiredRateRow> required_rates() {
    auto rows = streaming_rows();
    for (auto& row : scaling_laws_rows()) rows.push_back(std::move(row));
    for (auto& row : rows)
        for (std::size_t target = 0; target < kUtilizationTargets.size(); ++target)
            row.simulated_gbit_per_second[target] =
                exchange_seconds(row.parameters, row.bits, 2, 1) /
                longest_exchange_seconds(row.loop, kUtilizationTargets[target]);
    derive_step_seconds(rows);
    return rows;
}

std::vector<RunHoursRow> run_hours() {
    // 25, 100 and 250 billion tokens of Dolma at 1 Gbit/s; the steps follow from the hours of computing alone.
    struct Entry {
        const char* name;
        Method method;
        std::array<double, 3> hours;
    };
    const std::array<double, 3> computing_hours = {0.67, 2.7, 6.75};
    const std::array<const char*, 3> tokens = {"25B", "100B", "250B"};
    const std::vector<Entry> entries = {{"data parallel", kDataParallel, {109, 438, 1097}},
                                        {"streaming FP4", kFp4, {0.88, 3.5, 8.75}}};
    std::vector<RunHoursRow> rows;
    for (const auto& entry : entries) {
        auto loop = row_of(k1B, entry.method, {}).loop;
        loop.exchange_seconds = exchange_seconds(k1B.parameters, entry.method.bits, 2, 1);
        const double utilization = simulate(loop).compute_utilization.front();
        for (std::size_t i = 0; i < tokens.size(); ++i)
            rows.push_back({fmt::format("{} {} tokens", entry.name, tokens[i]), entry.hours[i],
                            computing_hours[i] / utilization});
    }
    return rows;
}

std::vector<MeasuredUtilizationRow> measured_utilization() {
    const std::array<double, 4> rates = {0.05, 0.2, 1, 5};
    struct Entry {
        std::int32_t inner_steps;
        std::array<double, 4> percent;
    };
    const std::vector<Entry> entries = {{1, {0.07, 0.32, 1.74, 7.76}},
                                        {8, {0.55, 2.48, 12.35, 40.24}},
                                        {32, {2.41, 10.01, 36.01, 68.10}},
                                        {128, {11.55, 36.09, 71.52, 87.00}}};
    constexpr double kParameters = 30.8e6, kBits = 32, kSites = 4;
    constexpr std::size_t kCalibrating = 2;  // the column of 1 Gbit/s gives the step's time
    std::vector<double> step_seconds;
    for (const auto& [inner_steps, percent] : entries) {
        const double utilization = percent[kCalibrating] / 100;
        step_seconds.push_back(exchange_seconds(kParameters, kBits, kSites, rates[kCalibrating]) *
                               utilization / (1 - utilization) / inner_steps);
    }
    std::vector<MeasuredUtilizationRow> rows;
    for (const auto& [inner_steps, percent] : entries)
        for (std::size_t i = 0; i < rates.size(); ++i) {
            const OuterLoop loop{.schedule = {inner_steps, 1, 0},
                                 .step_seconds = {median(step_seconds)},
                                 .exchange_seconds = exchange_seconds(kParameters, kBits, kSites, rates[i])};
            rows.push_back({inner_steps, rates[i], percent[i] / 100, simulate(loop).compute_utilization.front(),
                            i == kCalibrating});
        }
    return rows;
}

UtilizationErrors errors_of(const std::vector<RequiredRateRow>& rates, const std::vector<RunHoursRow>& hours,
                            const std::vector<MeasuredUtilizationRow>& measured) {
    UtilizationErrors errors{.least_ratio = 1, .greatest_ratio = 1};
    std::int32_t count = 0;
    for_each_checked_rate(rates, [&](double ratio) {
        errors.least_ratio = std::min(errors.least_ratio, ratio);
        errors.greatest_ratio = std::max(errors.greatest_ratio, ratio);
        errors.mean_ratio_error += std::abs(ratio - 1);
        ++count;
    });
    if (count > 0) errors.mean_ratio_error /= count;
    for (const auto& row : hours)
        errors.greatest_hours_error = std::max(errors.greatest_hours_error,
                                               std::abs(row.simulated_hours / row.published_hours - 1));
    for (const auto& row : measured)
        if (!row.calibrates)
            errors.greatest_points_error =
                std::max(errors.greatest_points_error, 100 * std::abs(row.simulated - row.measured));
    return errors;
}

std::string print(const std::vector<RequiredRateRow>& rows) {
    auto text = fmt::format("simulated Gbit/s for a utilization, and its ratio to the published Gbit/s\n{:<18}{:<20}",
                            "published by", "model, method");
    for (const auto target : kUtilizationTargets) text += fmt::format("{:>9.0f} % ratio", 100 * target);
    text += '\n';
    for (const auto& row : rows) {
        text += fmt::format("{:<18}{:<20}", row.source, row.name);
        for (std::size_t target = 0; target < kUtilizationTargets.size(); ++target)
            text += fmt::format("{:>11.2f} {:>4.2f}{}", row.simulated_gbit_per_second[target], row.ratio(target),
                                row.derived_step_seconds && target == 0 ? '*' : ' ');
        text += '\n';
    }
    return text + "* gave the time of a step, which is not published; not counted as a check\n";
}

std::string print(const std::vector<RunHoursRow>& rows) {
    auto text = fmt::format("{:<32}{:>15}{:>15}{:>8}\n", "1B at 1 Gbit/s", "published h", "simulated h", "ratio");
    for (const auto& row : rows)
        text += fmt::format("{:<32}{:>15.2f}{:>15.2f}{:>8.2f}\n", row.name, row.published_hours,
                            row.simulated_hours, row.simulated_hours / row.published_hours);
    return text;
}

std::string print(const std::vector<MeasuredUtilizationRow>& rows) {
    auto text = fmt::format("{:<16}{:>8}{:>12}{:>14}{:>9}\n", "30.8M, 4 sites", "Gbit/s", "measured %",
                            "simulated %", "points");
    for (const auto& row : rows)
        text += fmt::format("H {:<14}{:>8}{:>12.2f}{:>14.2f}{:>+9.2f}{}\n", row.inner_steps, row.gbit_per_second,
                            100 * row.measured, 100 * row.simulated, 100 * (row.simulated - row.measured),
                            row.calibrates ? " *" : "");
    return text + "* its column gave the time of a step; not counted as a check\n";
}

std::string print(const UtilizationErrors& errors) {
    return fmt::format(
        "simulated against published: rates {:.2f} to {:.2f} times the published ones (held to {} to {}), off by "
        "{:.1f} % on average\n"
        "hours off by at most {:.1f} % (held to {} %); measured utilization by at most {:.1f} points (held to {})\n",
        errors.least_ratio, errors.greatest_ratio, kLeastRateRatio, kGreatestRateRatio,
        100 * errors.mean_ratio_error, 100 * errors.greatest_hours_error, 100 * kGreatestHoursError,
        errors.greatest_points_error, kGreatestPointsError);
}

}  // namespace atl
