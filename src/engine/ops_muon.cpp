// Muon: the op between its element-wise parts (kernels/muon.h) and its matrix products (newton_schulz.h).
#include <cmath>

#include "engine/bind.h"
#include "engine/newton_schulz.h"
#include "engine/optimizer_scalars.h"
#include "kernels/adamw.h"
#include "kernels/gradient_scale.h"
#include "kernels/muon.h"

namespace atl {
namespace {

constexpr double kNormFloor = 1e-7;  // added to the norm, of a gradient that is nothing

}  // namespace

std::int64_t muon_scratch_bytes(const Value& gradient) {
    return NewtonSchulz<float>::elements(gradient.shape.front(), gradient.shape.back()) * size_bytes(gradient.dtype);
}

template <class T>
BoundCall bind_muon(const BoundOperands& o) {
    const auto attributes = o.attributes<MuonAttributes>();
    const std::int64_t rows = o.read_shape(0).at(0);
    const std::int64_t columns = o.read_shape(0).at(1);
    const std::int64_t count = rows * columns;
    const T* dw = o.read<T>(0);
    const double* norm2 = o.read<double>(1);
    const double* scalars = o.read<double>(2);
    T* w = o.write<T>(0);
    T* m = o.write<T>(1);
    T* x = reinterpret_cast<T*>(o.scratch());
    return [=, orthogonalised = NewtonSchulz<T>(x, rows, columns)]() mutable {
        const double tokens = scalars[kTokens];
        const double rate = scalars[kLearningRate];
        if (!kernels::is_steppable(*norm2, tokens)) return;
        const double gradient_scale = kernels::gradient_scale(*norm2, tokens, attributes.grad_clip);
        kernels::muon_momentum(kernels::MuonMomentum<T>{
            count, static_cast<T>(gradient_scale), static_cast<T>(attributes.momentum), dw, m, x});
        const double norm = std::sqrt(kernels::square_sum(kernels::SquareSum<T>{count, x}));
        kernels::scale_by(kernels::ScaleBy<T>{count, static_cast<T>(1 / (norm + kNormFloor)), x});
        kernels::muon_update(kernels::MuonUpdate<T>{
            count, static_cast<T>(1 - rate * attributes.weight_decay),
            static_cast<T>(rate * kernels::muon_scale(rows, columns)), orthogonalised.run(), w});
    };
}

template BoundCall bind_muon<float>(const BoundOperands&);
template BoundCall bind_muon<double>(const BoundOperands&);

}  // namespace atl
