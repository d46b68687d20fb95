// PlanDrift: tells from the time of each step when a strand plan no longer fits the machine: when the median of
// kDriftSteps steps in a row is off what is expected by more than kDriftShare.
//
// At first the plan's prediction is expected; a plan made from fresh measurements is then expected to go on as its first
// steps went, so that an error of the prediction alone doesn't make it be planned again and again. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace atl {

inline constexpr std::size_t kDriftSteps = 50;
inline constexpr double kDriftShare = 0.15;

class PlanDrift {
  public:
    // expected_seconds: nothing = what the first kDriftSteps steps take.
    explicit PlanDrift(std::optional<double> expected_seconds) : expected_seconds_(expected_seconds) {}

    // Why to plan again: "50 steps took 0.12 s each, 0.1 s were expected"; empty to go on.
    std::string add_step(double seconds);
    std::optional<double> expected_seconds() const { return expected_seconds_; }

  private:
    std::optional<double> expected_seconds_;
    std::vector<double> steps_;
};

}  // namespace atl
