// AdamW and the sum of squares. Plain loops: the compiler's vectors round each operation on its own.
#include "kernels/adamw_step.h"

#include "kernels/dispatch.h"
#include "kernels/fixed_lanes.h"
#include "kernels/parallel.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

inline float root(float x) {
    return __builtin_sqrtf(x);
}
inline double root(double x) {
    return __builtin_sqrt(x);
}

template <class T>
void update(const AdamwStep<T>& step, Range range) {
    const T* __restrict dw = step.dw;
    T* __restrict w = step.w;
    T* __restrict m = step.m;
    T* __restrict v = step.v;
    for (std::int64_t i = range.begin; i < range.end; ++i) {
        const T gradient = dw[i] * step.gradient_scale;
        const T first = m[i] + step.one_minus_beta1 * (gradient - m[i]);
        const T second = step.beta2 * v[i] + step.one_minus_beta2 * (gradient * gradient);
        m[i] = first;
        v[i] = second;
        w[i] = w[i] * step.keep -
               step.step_size * (first / (root(second) / step.root_correction + step.epsilon));
    }
}

template <class T>
void run(const AdamwStep<T>& step) {
    const AdamwStep<T> local = step;  // not reachable through the pointers it holds
    parallel_ranges(local.count, kLanes<T>, [&](Range range) { update(local, range); });
}

template <class T>
void run(const SquareSumInto<T>& op) {
    constexpr int kPieces = 64;
    double sums[kPieces];
    const int threads = op.count < 65536 ? 1 : kPieces;  // below this, starting threads costs more
    parallel_tasks(kPieces, threads, [&](std::int64_t part, int) {
        const Range range = piece(op.count, kPieces, part, kFixedLanes);
        sums[part] = fixed_sum(op.x + range.begin, range.end - range.begin, [](double x) { return x * x; });
    });
    *op.sum = 0;
    for (const double sum : sums) *op.sum += sum;
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const AdamwStep<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const AdamwStep<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const SquareSumInto<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const SquareSumInto<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
