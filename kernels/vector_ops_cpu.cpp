// Element-wise sum; sums of columns in panels of a few vectors.
#include "kernels/vector_ops.h"

#include "kernels/dispatch.h"
#include "kernels/parallel.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

template <class T>
void run(const Add<T>& op) {
    parallel_ranges(op.count, kLanes<T>, [&](Range range) {
        for_vectors<T>(range.end - range.begin, [&](std::int64_t i, std::int64_t lanes) {
            const std::int64_t at = range.begin + i;
            store_first(op.sum + at, load_first(op.a + at, lanes) + load_first(op.b + at, lanes), lanes);
        });
    });
}

constexpr std::int64_t kPanelVectors = 4;

// Rows are summed in runs of 64 that are then added up: the rounding error grows with the number of runs.
template <class T>
void sum_panel(const BiasGradient<T>& op, std::int64_t first, std::int64_t width) {
    constexpr std::int64_t kRun = 64;
    Vec<T> totals[kPanelVectors] = {};
    for (std::int64_t begin = 0; begin < op.rows; begin += kRun) {
        const std::int64_t end = begin + kRun < op.rows ? begin + kRun : op.rows;
        Vec<T> sums[kPanelVectors] = {};
        for (std::int64_t row = begin; row < end; ++row) {
            for_vectors<T>(width, [&](std::int64_t c, std::int64_t lanes) {
                sums[c / kLanes<T>] += load_first(op.dy + row * op.channels + first + c, lanes);
            });
        }
        for (std::int64_t v = 0; v < kPanelVectors; ++v) totals[v] += sums[v];
    }
    for_vectors<T>(width, [&](std::int64_t c, std::int64_t lanes) {
        T* to = op.dbias + first + c;
        const Vec<T> total = totals[c / kLanes<T>];
        store_first(to, op.accumulate ? load_first(to, lanes) + total : total, lanes);
    });
}

template <class T>
void run(const BiasGradient<T>& op) {
    constexpr std::int64_t kPanel = kPanelVectors * kLanes<T>;
    const std::int64_t whole = op.channels / kPanel;
    parallel_tasks(whole, usable_threads(),
                   [&](std::int64_t panel, int) { sum_panel(op, panel * kPanel, kPanel); });
    if (whole * kPanel < op.channels) sum_panel(op, whole * kPanel, op.channels - whole * kPanel);
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const Add<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Add<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const BiasGradient<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const BiasGradient<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
