#include <vector>

#include "engine/bind.h"
#include "engine/optimizer_scalars.h"
#include "kernels/adamw.h"
#include "kernels/gradient_scale.h"

namespace atl {
namespace {

template <class T>
BoundCall bind_square_sum(const BoundOperands& o) {
    std::vector<kernels::SquareSum<T>> parts;
    for (std::size_t i = 0; i < o.read_count(); ++i) {
        parts.push_back({element_count(o.read_shape(i)), o.read<T>(i)});
    }
    double* sum = o.write<double>(0);
    return [parts, sum] {
        double total = 0;
        for (const auto& part : parts) total += kernels::square_sum(part);
        *sum = total;
    };
}

template <class T>
BoundCall bind_adamw(const BoundOperands& o) {
    const auto& attributes = o.attributes<AdamwAttributes>();
    kernels::Adamw<T> adamw;
    adamw.count = element_count(o.read_shape(0));
    adamw.settings.beta1 = attributes.beta1;
    adamw.settings.beta2 = attributes.beta2;
    adamw.settings.epsilon = attributes.epsilon;
    adamw.settings.weight_decay = attributes.weight_decay;
    adamw.settings.grad_clip = attributes.grad_clip;
    adamw.dw = o.read<T>(0);
    const double* norm2 = o.read<double>(1);
    const double* scalars = o.read<double>(2);
    adamw.w = o.write<T>(0);
    adamw.m = o.write<T>(1);
    adamw.v = o.write<T>(2);
    return [adamw, norm2, scalars]() mutable {
        adamw.settings.norm2 = *norm2;
        adamw.settings.learning_rate = scalars[kLearningRate];
        adamw.settings.step = scalars[kStep];
        adamw.settings.tokens = scalars[kTokens];
        kernels::adamw(adamw);
    };
}

// For proofs that compare with plain gradient descent, not for speed.
template <class T>
BoundCall bind_sgd(const BoundOperands& o) {
    const auto attributes = o.attributes<SgdAttributes>();
    const std::int64_t count = element_count(o.read_shape(0));
    const T* dw = o.read<T>(0);
    const double* norm2 = o.read<double>(1);
    const double* scalars = o.read<double>(2);
    T* w = o.write<T>(0);
    return [=] {
        const double tokens = scalars[kTokens];
        if (!kernels::is_steppable(*norm2, tokens)) return;
        const T scale = static_cast<T>(kernels::gradient_scale(*norm2, tokens, attributes.grad_clip));
        const T rate = static_cast<T>(scalars[kLearningRate]);
        const T keep = static_cast<T>(1.0 - scalars[kLearningRate] * attributes.weight_decay);
        for (std::int64_t i = 0; i < count; ++i) w[i] = keep * w[i] - rate * (scale * dw[i]);
    };
}

}  // namespace

template <class T>
BoundCall bind_optimizer(const BoundOperands& o) {
    switch (o.op().kind) {
        case OpKind::square_sum:
            return bind_square_sum<T>(o);
        case OpKind::adamw:
            return bind_adamw<T>(o);
        default:
            ATOLL_CHECK(o.op().kind == OpKind::sgd);
            return bind_sgd<T>(o);
    }
}

template BoundCall bind_optimizer<float>(const BoundOperands&);
template BoundCall bind_optimizer<double>(const BoundOperands&);

}  // namespace atl
