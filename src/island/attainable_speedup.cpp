#include "island/attainable_speedup.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace atl {
namespace {

constexpr std::array kShares = {0.0, 0.10, 0.20, 0.30, 0.40, 0.55};
constexpr std::array kEffectiveness = {0.0, 0.3, 0.6, 0.8, 0.9, 1.0};
constexpr std::array<std::array<double, kEffectiveness.size()>, kShares.size()> kSpeedups = {{
    {1, 1, 1, 1, 1, 1},
    {1, 1.03, 1.06, 1.08, 1.10, 1.11},
    {1, 1.06, 1.12, 1.17, 1.20, 1.22},
    {1, 1.08, 1.19, 1.27, 1.31, 1.36},
    {1, 1.10, 1.24, 1.34, 1.40, 1.47},
    {1, 1.12, 1.27, 1.39, 1.47, 1.55},
}};

// Between which two of the sorted values x lies, and how far along.
struct Between {
    std::size_t below = 0;
    double share = 0;
};
template <std::size_t N>
Between locate(const std::array<double, N>& values, double x) {
    x = std::clamp(x, values.front(), values.back());
    std::size_t i = 0;
    while (i + 2 < N && values[i + 1] < x) ++i;
    return {i, (x - values[i]) / (values[i + 1] - values[i])};
}

}  // namespace

double perfect_overlap_speedup(double compute_seconds, double communication_seconds) {
    const double longer = std::max(compute_seconds, communication_seconds);
    return longer > 0 ? (compute_seconds + communication_seconds) / longer : 1;
}

double best_pair_speedup(double share, double effectiveness) {
    const Between row = locate(kShares, share);
    const Between column = locate(kEffectiveness, effectiveness);
    const auto along = [&](std::size_t r) {
        const auto& values = kSpeedups[r];
        return values[column.below] * (1 - column.share) + values[column.below + 1] * column.share;
    };
    const double speedup = along(row.below) * (1 - row.share) + along(row.below + 1) * row.share;
    return std::min(speedup, perfect_overlap_speedup(1 - share, share));
}

double attainable_speedup(const SerialStep& step, double effectiveness) {
    if (step.seconds <= 0 || step.layer_seconds <= 0) return 1;
    const double gain = best_pair_speedup(step.layer_communication_seconds / step.layer_seconds, effectiveness);
    const auto m = static_cast<double>(step.micro_batches);
    const double one = step.layer_seconds / m;  // F + B
    return step.seconds / (step.seconds - step.layer_seconds + one + (m - 1) * one / gain);
}

}  // namespace atl
