// The outer loop's arithmetic as plain loops without FMA: every vector width rounds alike.
#include <algorithm>
#include <cstdint>

#include "kernels/dispatch.h"
#include "kernels/fixed_lanes.h"
#include "kernels/outer_step_operations.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

// Whether a value was not finite.
class NotFinite {
  public:
    void look_at(Vec<float> values) { bad_ |= ((IntVector)values & kExponent) == kExponent; }
    bool any() const {
        std::int32_t any = 0;
        for (int lane = 0; lane < kLanes<float>; ++lane) any |= bad_[lane];
        return any != 0;
    }

  private:
    typedef std::int32_t IntVector __attribute__((vector_size(kVectorBytes)));
    static constexpr std::int32_t kExponent = 0x7f800000;
    IntVector bad_{};
};

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
    NotFinite bad;
    const auto mean_at = [&](std::int64_t i, std::int64_t lanes) {
        Vec<float> sum = load_first(local.values[0] + i, lanes) * local.weights[0];
        for (std::int64_t k = 1; k < local.inputs; ++k)
            sum = sum + load_first(local.values[k] + i, lanes) * local.weights[k];
        bad.look_at(sum);
        return local.factor != 0 ? sum * local.factor : sum / local.divisor;
    };
    const auto in_place = [&](std::int64_t i, std::int64_t lanes) {
        store_first(local.mean + i, mean_at(i, lanes), lanes);
    };
    if (local.stays_in_cache) {
        for_vectors<float>(local.count, in_place);
    } else {
        const auto misplaced = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(local.mean) / sizeof(float)) %
                               kLanes<float>;
        const std::int64_t begin = misplaced == 0 ? 0 : std::min(kLanes<float> - misplaced, local.count);
        for_vectors<float>(begin, in_place);
        for_vectors_apart<float, 2>(local.count - begin, [&](std::int64_t i, std::int64_t lanes) {
            if (lanes < kLanes<float>) return in_place(begin + i, lanes);
            store_past_cache(local.mean + begin + i, mean_at(begin + i, lanes));
        });
        _mm_sfence();
    }
    *local.finite = !bad.any();
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
    const AllFinite local = op;
    NotFinite bad;
    for_vectors_apart<float, 4>(local.count, [&](std::int64_t i, std::int64_t lanes) {
        bad.look_at(load_first(local.values + i, lanes));
    });
    *op.finite = !bad.any();
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
