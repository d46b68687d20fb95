#include "kernels/adamw.h"

#include <cmath>

#include "kernels/adamw_step.h"
#include "kernels/dispatch.h"
#include "kernels/gradient_scale.h"

namespace atl::kernels {

template <class T>
bool adamw(const Adamw<T>& operation, InstructionSet set) {
    const AdamwSettings& settings = operation.settings;
    if (!is_steppable(settings.norm2, settings.tokens)) return false;
    AdamwStep<T> step;
    step.count = operation.count;
    step.gradient_scale = static_cast<T>(gradient_scale(settings.norm2, settings.tokens, settings.grad_clip));
    step.keep = static_cast<T>(1 - settings.learning_rate * settings.weight_decay);
    step.one_minus_beta1 = static_cast<T>(1 - settings.beta1);
    step.beta2 = static_cast<T>(settings.beta2);
    step.one_minus_beta2 = static_cast<T>(1 - settings.beta2);
    step.step_size = static_cast<T>(settings.learning_rate / (1 - std::pow(settings.beta1, settings.step)));
    step.root_correction = static_cast<T>(std::sqrt(1 - std::pow(settings.beta2, settings.step)));
    step.epsilon = static_cast<T>(settings.epsilon);
    step.dw = operation.dw;
    step.w = operation.w;
    step.m = operation.m;
    step.v = operation.v;
    dispatch(step, set);
    return true;
}

template <class T>
double square_sum(const SquareSum<T>& operation, InstructionSet set) {
    double sum = 0;
    dispatch(SquareSumInto<T>{operation.count, operation.x, &sum}, set);
    return sum;
}

template bool adamw(const Adamw<float>&, InstructionSet);
template bool adamw(const Adamw<double>&, InstructionSet);
template double square_sum(const SquareSum<float>&, InstructionSet);
template double square_sum(const SquareSum<double>&, InstructionSet);

}  // namespace atl::kernels
