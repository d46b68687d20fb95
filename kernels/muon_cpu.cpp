// The element-wise parts of Muon. Plain loops: the compiler's vectors round each operation on its own.
#include "kernels/dispatch.h"
#include "kernels/muon.h"
#include "kernels/parallel.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

template <class T>
void run(const MuonMomentum<T>& op) {
    const MuonMomentum<T> local = op;  // not reachable through the pointers it holds
    parallel_ranges(local.count, kLanes<T>, [&](Range range) {
        const T* __restrict dw = local.dw;
        T* __restrict m = local.m;
        T* __restrict x = local.x;
        for (std::int64_t i = range.begin; i < range.end; ++i) {
            const T gradient = dw[i] * local.gradient_scale;
            const T momentum = local.momentum * m[i] + gradient;
            m[i] = momentum;
            x[i] = gradient + local.momentum * momentum;
        }
    });
}

template <class T>
void run(const MuonUpdate<T>& op) {
    const MuonUpdate<T> local = op;
    parallel_ranges(local.count, kLanes<T>, [&](Range range) {
        const T* __restrict orthogonal = local.orthogonal;
        T* __restrict w = local.w;
        for (std::int64_t i = range.begin; i < range.end; ++i)
            w[i] = w[i] * local.keep - local.step_size * orthogonal[i];
    });
}

template <class T>
void run(const ScaleBy<T>& op) {
    const ScaleBy<T> local = op;
    parallel_ranges(local.count, kLanes<T>, [&](Range range) {
        for (std::int64_t i = range.begin; i < range.end; ++i) local.x[i] *= local.factor;
    });
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const MuonMomentum<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const MuonMomentum<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const MuonUpdate<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const MuonUpdate<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const ScaleBy<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const ScaleBy<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
