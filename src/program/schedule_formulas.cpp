#include "program/schedule_formulas.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

double bubble_of_interleaved(const ScheduleOptions& options, double F, double B) {
    const auto P = options.ranks, m = options.micro_batches;
    const auto lacking = (P - m % P) % P;
    return (P - 1) * (F + B) + (options.chunks - 1) * lacking * (m < P ? F + B : B);
}

double bubble_of_zero_bubble(const ScheduleOptions& options, const WorkCosts& costs) {
    const double F = costs.forward_seconds, I = costs.input_gradient_seconds;
    const double least = std::min({F, I, costs.weight_gradient_seconds});
    const auto P = options.ranks;
    if (options.kind == ScheduleKind::zero_bubble)
        return (P - 1) * (F + I) - (std::min(options.micro_batches, P) - 1) * least;
    const auto hidden = std::min(options.micro_batches, 2 * P - 1) - 1;
    return (P - 1) * (F + I) - hidden / 2 * std::min(I, 2 * least) - hidden % 2 * least;
}

// Whether all of DualPipeV's parts are there and nothing but its cells decides.
bool is_regular_fold(const ScheduleOptions& options) {
    return options.micro_batches >= 2 * options.ranks && options.memory_micro_batches == 0;
}

double step_of_strands(const ScheduleOptions& options, const WorkCosts& costs) {
    const double F = costs.forward_seconds, I = costs.input_gradient_seconds,
                 W = costs.weight_gradient_seconds;
    const double pair = (F + I + W) / costs.pair_gain;
    const auto P = options.ranks, m = options.micro_batches;
    if (P > 1)
        return (2 * m - P - 1) * pair + 2 * P * (F + I) + 2 * W +
               (P - 1) * (std::max(F, I) + std::max(0.0, W - I));
    const bool pairs_ends = options.memory_micro_batches > 2 && m > 1;
    if (pairs_ends) return (m - 2) * pair + 2 * F / costs.pair_gain + 2 * (I + W) / costs.pair_gain;
    return F + (m - 1) * pair + I + W;
}

}  // namespace

std::optional<double> formula_step_seconds(const ScheduleOptions& options, const WorkCosts& costs) {
    ATOLL_CHECK(costs.transfer_seconds == 0 && costs.stage_scale.empty(), "formulas know no transfer");
    const double F = costs.forward_seconds, I = costs.input_gradient_seconds,
                 W = costs.weight_gradient_seconds;
    const auto P = options.ranks, m = options.micro_batches;
    const double work = m * pipeline_of(options).chunks * (F + I + W);
    switch (options.kind) {
        case ScheduleKind::serial:
            return work + m * (P - 1) * (F + I + W);
        case ScheduleKind::gpipe:
        case ScheduleKind::one_f_one_b:
            return work + (P - 1) * (F + I + W);
        case ScheduleKind::interleaved:
            if (F > I + W || (options.chunks > 2 && m > P && m % P != 0)) return std::nullopt;
            return work + bubble_of_interleaved(options, F, I + W);
        case ScheduleKind::zero_bubble:
        case ScheduleKind::zero_bubble_wide:
            return work + bubble_of_zero_bubble(options, costs);
        case ScheduleKind::dualpipev:
            if (!is_regular_fold(options)) return std::nullopt;
            return work + std::max((P - 1) * (F + I - std::min(I, W)), (P - 1) * (2 * I - W) - F);
        case ScheduleKind::strands: {
            const double pair = (F + I + W) / costs.pair_gain;
            if (P > 1 && (!is_regular_fold(options) || pair < F + I || pair < 2 * I)) return std::nullopt;
            return step_of_strands(options, costs);
        }
    }
    return std::nullopt;
}

std::optional<std::vector<std::int32_t>> formula_peak_pieces(const ScheduleOptions& options) {
    const auto P = options.ranks, m = options.micro_batches, v = options.chunks;
    std::vector<std::int32_t> pieces;
    for (std::int32_t rank = 0; rank < P; ++rank) switch (options.kind) {
            case ScheduleKind::serial:
                pieces.push_back(1);
                break;
            case ScheduleKind::gpipe:
                pieces.push_back(m);
                break;
            case ScheduleKind::one_f_one_b:
                pieces.push_back(std::min(m, P - rank));
                break;
            case ScheduleKind::interleaved:
                if (m % P != 0) return std::nullopt;
                pieces.push_back(std::min(v * m, 2 * (P - 1 - rank) + (v - 1) * P + 1));
                break;
            case ScheduleKind::zero_bubble:
                pieces.push_back(std::min(m, P));
                break;
            case ScheduleKind::zero_bubble_wide:
                pieces.push_back(std::min(m, 2 * P - 1));
                break;
            case ScheduleKind::strands:
                if (P == 1) {
                    pieces.push_back(std::min(m, options.memory_micro_batches > 2 ? 3 : 2));
                    break;
                }
                [[fallthrough]];
            case ScheduleKind::dualpipev:
                if (!is_regular_fold(options)) return std::nullopt;
                pieces.push_back(2 * P + 1);
                break;
        }
    return pieces;
}

}  // namespace atl
