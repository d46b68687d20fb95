#include "program/plan_drift.h"

#include <fmt/format.h>

#include <cmath>

#include "core/statistics.h"

namespace atl {

std::string PlanDrift::add_step(double seconds) {
    steps_.push_back(seconds);
    if (steps_.size() < kDriftSteps) return "";
    const double taken = median(std::move(steps_));
    steps_.clear();
    if (!expected_seconds_) {
        expected_seconds_ = taken;
        return "";
    }
    if (std::abs(taken - *expected_seconds_) <= kDriftShare * *expected_seconds_) return "";
    return fmt::format("{} steps took {:.4g} s each, {:.4g} s were expected", kDriftSteps, taken,
                       *expected_seconds_);
}

}  // namespace atl
