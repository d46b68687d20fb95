// The outer loop's arithmetic as plain loops without FMA: every vector width rounds alike.
#include "kernels/dispatch.h"
#include "kernels/fixed_lanes.h"
#include "kernels/outer_step_operations.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

void run(const Subtract& op) {
    const Subtract local = op;  // not reachable through the pointers it holds
    for (std::int64_t i = 0; i < local.count; ++i) local.delta[i] = local.before[i] - local.after[i];
}

void run(const AddWeighted& op) {
    const AddWeighted local = op;
    for (std::int64_t i = 0; i < local.count; ++i) local.accumulator[i] += local.weight * local.values[i];
}

void run(const Scale& op) {
    const Scale local = op;
    for (std::int64_t i = 0; i < local.count; ++i) local.values[i] *= local.factor;
}

void run(const WeightedMean& op) {
    const WeightedMean local = op;
    typedef std::int32_t IntVector __attribute__((vector_size(kVectorBytes)));
    constexpr std::int32_t kExponent = 0x7f800000;
    IntVector bad{};
    for_vectors<float>(local.count, [&](std::int64_t i, std::int64_t lanes) {
        Vec<float> sum = load_first(local.values[0] + i, lanes) * local.weights[0];
        for (std::int64_t k = 1; k < local.inputs; ++k)
            sum = sum + load_first(local.values[k] + i, lanes) * local.weights[k];
        bad |= ((IntVector)sum & kExponent) == kExponent;
        store_first(local.mean + i, local.factor != 0 ? sum * local.factor : sum / local.divisor, lanes);
    });
    std::int32_t any = 0;
    for (int lane = 0; lane < kLanes<float>; ++lane) any |= bad[lane];
    *local.finite = any == 0;
}

void run(const Interpolate& op) {
    const Interpolate local = op;
    for (std::int64_t i = 0; i < local.count; ++i) {
        local.target[i] += local.fraction * (local.source[i] - local.target[i]);
    }
}

void run(const PlainSgd& op) {
    const PlainSgd local = op;
    for (std::int64_t i = 0; i < local.count; ++i) local.theta[i] -= local.learning_rate * local.delta[i];
}

void run(const MomentumSgd& op) {
    const MomentumSgd local = op;
    for (std::int64_t i = 0; i < local.count; ++i) {
        const float delta = local.delta[i];
        const float velocity = local.momentum * local.velocity[i] + delta;
        const float direction = local.nesterov ? delta + local.momentum * velocity : velocity;
        local.velocity[i] = velocity;
        local.theta[i] -= local.learning_rate * direction;
    }
}

void run(const AdamOuter& op) {
    const AdamOuter local = op;
    const float first_part = 1 - local.first_decay;
    const float second_part = 1 - local.second_decay;
    for (std::int64_t i = 0; i < local.count; ++i) {
        const float delta = local.delta[i];
        const float first = local.first_decay * local.first[i] + first_part * delta;
        const float second = local.second_decay * local.second[i] + second_part * (delta * delta);
        local.first[i] = first;
        local.second[i] = second;
        local.theta[i] -=
            local.step_size * first / (__builtin_sqrtf(second * local.second_scale) + local.epsilon);
    }
}

void run(const AllFinite& op) {
    constexpr std::int32_t kExponent = 0x7f800000;
    const AllFinite local = op;
    *op.finite = true;
    constexpr std::int64_t kBlock = 4096;
    for (std::int64_t first = 0; first < local.count; first += kBlock) {
        const std::int64_t end = first + kBlock < local.count ? first + kBlock : local.count;
        std::int32_t bad = 0;
        for (std::int64_t i = first; i < end; ++i) {
            bad |= (__builtin_bit_cast(std::int32_t, local.values[i]) & kExponent) == kExponent ? 1 : 0;
        }
        if (bad != 0) {
            *op.finite = false;
            return;
        }
    }
}

void run(const FixedSquareSum& op) {
    *op.sum = fixed_sum(op.values, op.count, [](double x) { return x * x; });
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const Subtract& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const AddWeighted& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Scale& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const WeightedMean& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const Interpolate& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const PlainSgd& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const MomentumSgd& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const AdamOuter& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const AllFinite& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const FixedSquareSum& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
