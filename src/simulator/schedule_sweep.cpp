#include "simulator/schedule_sweep.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "simulator/fold_schedules.h"

namespace atl {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

ScheduleTable table_of(const std::string& schedule, std::int32_t ranks, std::int32_t micro_batches) {
    if (schedule == "w") return w_schedule(ranks, micro_batches);
    if (schedule == "zb-v") return zero_bubble_v_schedule(ranks, micro_batches);
    return make_schedule_table({*schedule_kind_from_name(schedule), ranks, micro_batches});
}

bool pairs(const ScheduleMethod& method) {
    const auto schedule = schedule_of(method);
    return schedule == "w" || schedule == "strands";
}

}  // namespace

std::string schedule_of(const ScheduleMethod& method) {
    return method.name.substr(0, method.name.find(','));
}

const std::vector<ScheduleMethod>& schedule_methods() {
    static const std::vector<ScheduleMethod> methods = {
        {"1f1b", ExecutionMode::event},
        {"interleaved", ExecutionMode::event},
        {"zb-v", ExecutionMode::event},
        {"dualpipev", ExecutionMode::event},
        {"w, barriers", ExecutionMode::barrier},
        {"w", ExecutionMode::event},
        {"strands, barriers", ExecutionMode::barrier},
        {"strands", ExecutionMode::event},
    };
    return methods;
}

StepWork& ScheduleSweep::work(const std::string& schedule, const SweepPoint& point) {
    const auto [place, is_new] =
        works_.try_emplace({schedule, point.pipeline_ranks, point.micro_batches}, StepWork{});
    auto& work = place->second;
    if (is_new) {
        auto step = step_;
        step.pp = point.pipeline_ranks;
        step.micro_batches = point.micro_batches;
        work = make_step_work(step, table_of(schedule, step.pp, step.micro_batches), rates_);
    }
    return work;
}

std::vector<double> ScheduleSweep::seconds(const SweepPoint& point, const std::string& asked) {
    // The links' factor is that at which a rank of 1F1B has the share.
    auto& plain = work("1f1b", point);
    set_communication_share(plain, point.communication_share);
    const auto overlap = overlap_model_of(point.overlap_level);
    std::vector<double> seconds;
    for (const auto& method : schedule_methods()) {
        const auto schedule = schedule_of(method);
        const bool is_asked = asked.empty() || schedule == asked || schedule == "1f1b";
        if (!is_asked || (schedule == "interleaved" && point.pipeline_ranks == 1)) {
            seconds.push_back(kNever);
            continue;
        }
        auto& chosen = work(schedule, point);
        chosen.link_factor = plain.link_factor;
        seconds.push_back(step_seconds(chosen, method.mode, overlap));
    }
    return seconds;
}

double ScheduleSweep::gain(const SweepPoint& point) {
    const auto all = seconds(point);
    double without_pairs = kNever;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (!pairs(schedule_methods()[i])) without_pairs = std::min(without_pairs, all[i]);
    return without_pairs / all.back();
}

std::vector<SweepAxis> sweep_axes(const SweepPoint& base) {
    const auto axis = [&](const std::string& name, const std::vector<double>& values, auto&& set) {
        SweepAxis swept{name, {}};
        for (const auto value : values) {
            auto point = base;
            set(point, value);
            swept.points.emplace_back(value, point);
        }
        return swept;
    };
    return {
        axis("communication share", {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6},
             [](SweepPoint& point, double value) { point.communication_share = value; }),
        axis("overlap level", {-0.3, 0, 0.3, 0.5, 0.7, 0.8, 0.9, 1},
             [](SweepPoint& point, double value) { point.overlap_level = value; }),
        axis("pipeline ranks", {1, 2, 4, 8},
             [](SweepPoint& point, double value) { point.pipeline_ranks = static_cast<std::int32_t>(value); }),
        axis("micro-batches", {1, 2, 4, 8, 16, 32, 64},
             [](SweepPoint& point, double value) { point.micro_batches = static_cast<std::int32_t>(value); }),
    };
}

SweepTable sweep(ScheduleSweep& sweep, const SweepAxis& axis) {
    SweepTable table{axis, {}};
    for (const auto& [value, point] : axis.points) {
        const auto seconds = sweep.seconds(point);
        auto& speedups = table.speedups.emplace_back();
        for (const auto method_seconds : seconds) speedups.push_back(seconds.front() / method_seconds);
    }
    return table;
}

RegionTable overlap_region(ScheduleSweep& sweep, const SweepPoint& base) {
    RegionTable table{"overlap level", "communication share", {-0.3, 0, 0.2, 0.4, 0.6, 0.8, 1},
                      {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, {}};
    for (const auto level : table.rows) {
        auto& gains = table.gains.emplace_back();
        for (const auto share : table.columns) {
            auto point = base;
            point.overlap_level = level;
            point.communication_share = share;
            gains.push_back(sweep.gain(point));
        }
    }
    return table;
}

RegionTable pipeline_region(ScheduleSweep& sweep, const SweepPoint& base) {
    RegionTable table{"pipeline ranks", "micro-batches", {1, 2, 4, 8}, {1, 2, 4, 8, 16, 32}, {}};
    for (const auto ranks : table.rows) {
        auto& gains = table.gains.emplace_back();
        for (const auto micro_batches : table.columns) {
            auto point = base;
            point.pipeline_ranks = static_cast<std::int32_t>(ranks);
            point.micro_batches = static_cast<std::int32_t>(micro_batches);
            gains.push_back(sweep.gain(point));
        }
    }
    return table;
}

}  // namespace atl
