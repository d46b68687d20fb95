#include "island/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace atl {
namespace {

// How far `step` has come from `begin` to the last step of the run, in [0, 1].
double progress(std::int64_t step, std::int64_t begin, std::int64_t steps) {
    const std::int64_t length = steps - 1 - begin;
    if (length <= 0) return step >= steps - 1 ? 1.0 : 0.0;
    return std::clamp(static_cast<double>(step - begin) / static_cast<double>(length), 0.0, 1.0);
}

}  // namespace

double learning_rate(const OptimConfig& optim, std::int64_t step, std::int64_t steps) {
    ATOLL_CHECK(step >= 0, "step {}", step);
    const double floor = optim.lr * optim.final_lr_fraction;
    if (step < optim.warmup_steps) {
        return optim.lr * static_cast<double>(step + 1) / static_cast<double>(optim.warmup_steps);
    }
    switch (optim.schedule) {
        case LearningRateSchedule::constant:
            return optim.lr;
        case LearningRateSchedule::cosine: {
            const double angle = std::numbers::pi * progress(step, optim.warmup_steps, steps);
            return floor + (optim.lr - floor) * 0.5 * (1.0 + std::cos(angle));
        }
        default: {
            const auto decay_steps =
                static_cast<std::int64_t>(optim.decay_fraction * static_cast<double>(steps));
            const std::int64_t begin = std::max(optim.warmup_steps, steps - decay_steps);
            if (step < begin) return optim.lr;
            return optim.lr + (floor - optim.lr) * progress(step, begin - 1, steps);
        }
    }
}

}  // namespace atl
