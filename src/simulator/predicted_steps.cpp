#include "simulator/predicted_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "simulator/blocking_program.h"
#include "simulator/fold_schedules.h"

namespace atl {
namespace {

// Simulated levels, and how finely one is fitted.
constexpr double kLeastLevel = 0.4, kLevelStep = 0.1, kFittedStep = 0.01;
constexpr std::size_t kLevels = 7;

// A row's programs without an overlap level yet.
struct RowWork {
    explicit RowWork(const PublishedStep& published)
        : row(published),
          order(make_schedule_table({ScheduleKind::one_f_one_b, row.step.pp, row.step.micro_batches})),
          ops(emit_island_step(row.step, order.pipeline)),
          serial(work_of(order)),
          strands(make_step_work(row.step, w_schedule(row.step.pp, row.step.micro_batches), rates())) {
        for (std::size_t i = 0; i < serial.programs.size(); ++i) {
            serial.programs[i] = with_blocking_communication(std::move(serial.programs[i]));
            serial.seconds[i] = predicted_seconds(serial.programs[i], rates());
        }
        least_seconds = serial_seconds(0, 1);
        ATOLL_CHECK_LT(least_seconds, row.serial_seconds, "{} is published as faster than its cluster",
                       row.name);
    }

    // Of a schedule with the stages of 1F1B.
    StepWork work_of(const ScheduleTable& table) const {
        ATOLL_CHECK(table.pipeline == order.pipeline, "other stages than {} plain ones",
                    order.pipeline.ranks);
        return make_step_work(ops, table, rates());
    }
    MachineRates rates() const { return rates_of(cluster_from_name(row.cluster), row.step.tp); }
    double speedup(StepWork& work, double factor, ExecutionMode mode, double level) const {
        set_factor(work, factor);
        return row.serial_seconds / step_seconds(work, mode, overlap_model_of(level));
    }
    // With which the serial step takes as long as published. From `guess`.
    double matching_factor(double guess, double level) {
        double factor = guess, below = 0, seconds_below = serial_seconds(0, level);
        ATOLL_CHECK_LT(seconds_below, row.serial_seconds, "{} is published as faster than its cluster",
                       row.name);
        // Secants: the time grows with the factor, in nearly straight pieces.
        for (int i = 0; i < 10; ++i) {
            const double seconds = serial_seconds(factor, level);
            if (std::abs(seconds / row.serial_seconds - 1) < kExact) return factor;
            const double slope = (seconds - seconds_below) / (factor - below);
            if (seconds < row.serial_seconds || i > 0) {
                below = factor;
                seconds_below = seconds;
            }
            factor += (row.serial_seconds - seconds) / slope;
        }
        return factor;
    }
    double serial_seconds(double factor, double level) {
        set_factor(serial, factor);
        return step_seconds(serial, ExecutionMode::event, overlap_model_of(level));
    }
    void set_factor(StepWork& work, double factor) const {
        (row.unknown == SerialUnknown::links ? work.link_factor : work.compute_factor) = factor;
    }

    static constexpr double kExact = 1e-3;
    const PublishedStep& row;
    ScheduleTable order;
    std::vector<StepOps> ops;
    StepWork serial;
    StepWork strands;
    double least_seconds = 0;  // of the serial step, were the factor 0
};

// DHelix's column at some levels of overlap; straight lines between them are exact enough to fit a level by.
struct RowAtLevels {
    std::vector<double> factors;      // [level]
    std::vector<double> interleaved;  // [level]

    static double between(const std::vector<double>& values, double level) {
        const double place = (level - kLeastLevel) / kLevelStep;
        const auto i = std::min(static_cast<std::size_t>(place), kLevels - 2);
        const double past = place - static_cast<double>(i);
        return (1 - past) * values[i] + past * values[i + 1];
    }
};

RowAtLevels simulate_row(RowWork& work) {
    RowAtLevels result;
    double factor = 1;
    for (std::size_t i = 0; i < kLevels; ++i) {
        const double level = kLeastLevel + kLevelStep * static_cast<double>(i);
        factor = work.matching_factor(factor, level);
        result.factors.push_back(factor);
        result.interleaved.push_back(work.speedup(work.strands, factor, ExecutionMode::event, level));
    }
    return result;
}

std::map<std::string, double> group_shares(const StepWork& work, double seconds) {
    std::map<std::string, double> shares;
    const auto& program = work.programs.front();
    for (const auto& op : program.ops)
        if (const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes))
            shares[collective->group] +=
                work.link_factor * work.seconds.front()[static_cast<std::size_t>(op.id.value())] / seconds;
    return shares;
}

PredictedStep predict_row(RowWork& work, const RowAtLevels& simulated, double level) {
    const auto& step = work.row.step;
    const double factor = work.matching_factor(RowAtLevels::between(simulated.factors, level), level);
    work.set_factor(work.serial, factor);
    const double computing = compute_seconds(work.serial), communicating = communication_seconds(work.serial);
    auto free_order = work.work_of(work.order);
    auto pairs = work.work_of(side_by_side_schedule(step.pp, step.micro_batches));
    return {.factor = factor,
            .communication_share = communicating / (computing + communicating),
            .group_shares = group_shares(work.serial, work.row.serial_seconds),
            .overlap_level = level,
            .intra_batch = work.speedup(free_order, factor, ExecutionMode::event, level),
            .side_by_side = work.speedup(pairs, factor, ExecutionMode::barrier, level),
            .interleaved = work.speedup(work.strands, factor, ExecutionMode::event, level)};
}

// The level with the least mean absolute error over the cluster's rows but `left_out`.
double fitted_level(const std::vector<PublishedStep>& rows, const std::vector<RowAtLevels>& simulated,
                    std::size_t left_out) {
    constexpr auto kSteps = static_cast<int>(kLevelStep * (kLevels - 1) / kFittedStep + 0.5);
    double best = kLeastLevel, least_error = std::numeric_limits<double>::max();
    for (int step = 0; step <= kSteps; ++step) {
        const double level = kLeastLevel + kFittedStep * step;
        double error = 0;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (i != left_out && rows[i].cluster == rows[left_out].cluster)
                error += std::abs(RowAtLevels::between(simulated[i].interleaved, level) -
                                  rows[i].speedups.interleaved);
        if (error >= least_error) continue;
        least_error = error;
        best = level;
    }
    return best;
}

double mean_of_others(const std::vector<PublishedStep>& rows, std::size_t left_out) {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (i != left_out && rows[i].cluster == rows[left_out].cluster) {
            sum += rows[i].speedups.interleaved;
            ++count;
        }
    return sum / count;
}

class MeanError {
  public:
    void add(double predicted, const std::optional<double>& published) {
        if (!published) return;
        sum_ += 100 * std::abs(predicted - *published);
        ++count_;
    }
    double points() const { return count_ > 0 ? sum_ / count_ : 0; }

  private:
    double sum_ = 0;
    double count_ = 0;
};

std::string cell(const std::optional<double>& published, double predicted) {
    return published ? fmt::format("{:>10.2f}{:>8.2f}", *published, predicted)
                     : fmt::format("{:>10}{:>8.2f}", "-", predicted);
}

}  // namespace

std::vector<PredictedStep> predict_published_steps() {
    const auto& rows = published_steps();
    std::vector<RowWork> works;
    std::vector<RowAtLevels> simulated;
    for (const auto& row : rows) simulated.push_back(simulate_row(works.emplace_back(row)));
    std::vector<PredictedStep> predicted;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        auto& row =
            predicted.emplace_back(predict_row(works[i], simulated[i], fitted_level(rows, simulated, i)));
        row.mean_of_others = mean_of_others(rows, i);
    }
    return predicted;
}

SpeedupErrors errors_of(const std::vector<PredictedStep>& predicted) {
    MeanError interleaved, intra_batch, side_by_side, mean_of_others;
    std::map<std::string, MeanError> on;
    for (std::size_t i = 0; i < predicted.size(); ++i) {
        const auto& published = published_steps()[i].speedups;
        interleaved.add(predicted[i].interleaved, published.interleaved);
        on[published_steps()[i].cluster].add(predicted[i].interleaved, published.interleaved);
        intra_batch.add(predicted[i].intra_batch, published.intra_batch);
        side_by_side.add(predicted[i].side_by_side, published.side_by_side);
        mean_of_others.add(predicted[i].mean_of_others, published.interleaved);
    }
    SpeedupErrors errors{.interleaved = interleaved.points(),
                         .intra_batch = intra_batch.points(),
                         .side_by_side = side_by_side.points(),
                         .mean_of_others = mean_of_others.points()};
    for (const auto& [cluster, error] : on) errors.interleaved_on[cluster] = error.points();
    return errors;
}

std::string print(const std::vector<PredictedStep>& predicted) {
    auto text = fmt::format(
        "simulated speed-ups over the serial step beside published "
        "ones\n{:<16}{:<6}{:>10}{:>9}{:>8}{:>9}{:>18}{:>18}"
        "{:>18}{:>8}\n{:<16}{:<6}{:>10}{:>9}{:>8}{:>9}{:>18}{:>18}{:>18}\n",
        "", "", "serial s", "factor", "comm %", "overlap", "DHelix", "intra-batch", "Wavelet+", "error",
        "model", "on", "published", "fitted", "of work", "level", "published  sim.", "published  sim.",
        "published  sim.");
    for (std::size_t i = 0; i < predicted.size(); ++i) {
        const auto& row = published_steps()[i];
        text += fmt::format("{:<16}{:<6}{:>10.1f}{:>8.2f}{}{:>8.1f}{:>9.2f}{}{}{}{:>+8.1f}\n", row.name,
                            row.cluster, row.serial_seconds, predicted[i].factor,
                            row.unknown == SerialUnknown::links ? 'x' : 'c',
                            100 * predicted[i].communication_share, predicted[i].overlap_level,
                            cell(row.speedups.interleaved, predicted[i].interleaved),
                            cell(row.speedups.intra_batch, predicted[i].intra_batch),
                            cell(row.speedups.side_by_side, predicted[i].side_by_side),
                            100 * (predicted[i].interleaved - row.speedups.interleaved));
    }
    const auto errors = errors_of(predicted);
    text += fmt::format(
        "factor: how many times slower than the cluster's rates the links (x) or the kernels (c) are by the "
        "published "
        "serial step\nmean absolute error, leave one out: DHelix {:.1f} points (held to {:.0f};",
        errors.interleaved, kGreatestSpeedupError);
    for (const auto& [cluster, points] : errors.interleaved_on)
        text += fmt::format(" {} {:.1f}", cluster, points);
    return text +
           fmt::format(
               "), intra-batch {:.1f}, Wavelet+ {:.1f}\nfor comparison, the mean of a cluster's other rows "
               "as the guess for DHelix: {:.1f} points\n",
               errors.intra_batch, errors.side_by_side, errors.mean_of_others);
}

}  // namespace atl
