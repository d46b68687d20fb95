#include "kernels/outer_step.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "kernels/dispatch.h"
#include "kernels/outer_step_operations.h"

namespace atl::kernels {
namespace {

std::int64_t elements_of(std::span<const float> values) {
    return static_cast<std::int64_t>(values.size());
}

}  // namespace

void subtract(std::span<const float> before, std::span<const float> after, std::span<float> delta,
              InstructionSet set) {
    ATOLL_CHECK_EQ(before.size(), after.size());
    ATOLL_CHECK_EQ(before.size(), delta.size());
    dispatch(Subtract{elements_of(delta), before.data(), after.data(), delta.data()}, set);
}

void add_weighted(std::span<const float> values, float weight, std::span<float> accumulator,
                  InstructionSet set) {
    ATOLL_CHECK_EQ(values.size(), accumulator.size());
    dispatch(AddWeighted{elements_of(values), values.data(), weight, accumulator.data()}, set);
}

void scale(std::span<float> values, float factor, InstructionSet set) {
    dispatch(Scale{elements_of(values), values.data(), factor}, set);
}

bool weighted_mean(std::span<const float* const> inputs, std::span<const float> weights, float divisor,
                   std::span<float> mean, ReadAgain mean_is_read, InstructionSet set) {
    ATOLL_CHECK_EQ(inputs.size(), weights.size());
    ATOLL_CHECK(!inputs.empty(), "a mean of nothing");
    int exponent = 0;
    const bool is_power_of_two = std::frexp(divisor, &exponent) == 0.5F;
    bool finite = true;
    dispatch(WeightedMean{.count = elements_of(mean),
                          .inputs = static_cast<std::int64_t>(inputs.size()),
                          .values = inputs.data(),
                          .weights = weights.data(),
                          .divisor = divisor,
                          .factor = is_power_of_two ? 1.0F / divisor : 0.0F,
                          .mean = mean.data(),
                          .stays_in_cache = mean_is_read == ReadAgain::soon,
                          .finite = &finite},
             set);
    return finite;
}

void interpolate(std::span<const float> source, float fraction, std::span<float> target, InstructionSet set) {
    ATOLL_CHECK_EQ(source.size(), target.size());
    // target + (source − target) is not always source.
    if (fraction == 1.0F) {
        std::copy(source.begin(), source.end(), target.begin());
        return;
    }
    dispatch(Interpolate{elements_of(source), source.data(), fraction, target.data()}, set);
}

void outer_sgd_step(const OuterSgd& settings, std::span<const float> delta, std::span<float> theta,
                    std::span<float> velocity, InstructionSet set) {
    ATOLL_CHECK_EQ(delta.size(), theta.size());
    if (settings.momentum == 0.0F) {
        dispatch(PlainSgd{elements_of(delta), settings.learning_rate, delta.data(), theta.data()}, set);
        return;
    }
    ATOLL_CHECK_EQ(delta.size(), velocity.size());
    dispatch(MomentumSgd{elements_of(delta), settings.learning_rate, settings.momentum, settings.nesterov,
                         delta.data(), theta.data(), velocity.data()},
             set);
}

namespace {

// 1 − βᵗ by repeated squaring: the same bits everywhere, which std::pow does not promise.
double bias_of_decay(double decay, std::int64_t step) {
    double power = 1;
    for (; step > 0; step >>= 1, decay *= decay)
        if ((step & 1) != 0) power *= decay;
    return 1 - power;
}

}  // namespace

void outer_adam_step(const OuterAdam& settings, std::span<const float> delta, std::span<float> theta,
                     std::span<float> first, std::span<float> second, InstructionSet set) {
    ATOLL_CHECK(settings.step > 0, "step {}", settings.step);
    ATOLL_CHECK_EQ(delta.size(), theta.size());
    ATOLL_CHECK_EQ(delta.size(), first.size());
    ATOLL_CHECK_EQ(delta.size(), second.size());
    dispatch(AdamOuter{.count = elements_of(delta),
                       .step_size = static_cast<float>(settings.learning_rate /
                                                       bias_of_decay(settings.first_decay, settings.step)),
                       .first_decay = settings.first_decay,
                       .second_decay = settings.second_decay,
                       .second_scale = static_cast<float>(1 / bias_of_decay(settings.second_decay, settings.step)),
                       .epsilon = settings.epsilon,
                       .delta = delta.data(),
                       .theta = theta.data(),
                       .first = first.data(),
                       .second = second.data()},
             set);
}

bool all_finite(std::span<const float> values, InstructionSet set) {
    bool finite = true;
    dispatch(AllFinite{elements_of(values), values.data(), &finite}, set);
    return finite;
}

double norm(std::span<const float> values, InstructionSet set) {
    double sum = 0;
    dispatch(FixedSquareSum{elements_of(values), values.data(), &sum}, set);
    return std::sqrt(sum);
}

}  // namespace atl::kernels
