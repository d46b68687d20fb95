#include "engine/bind.h"
#include "kernels/norm.h"

namespace atl {
namespace {

// reads: x (, delta), gamma (, beta); writes: (sum,) y (, mean), rstd.
template <class T, class Norm>
void set_rows(Norm& norm, const BoundOperands& o, bool with_add) {
    norm.rows = o.read_shape(0).at(0);
    norm.channels = o.read_shape(0).at(1);
    norm.epsilon = o.attributes<NormAttributes>().epsilon;
    norm.x = o.read<T>(0);
    if (with_add) {
        norm.delta = o.read<T>(1);
        norm.sum = o.write<T>(0);
    }
}

template <class T>
BoundCall bind_rms_norm(const BoundOperands& o, bool with_add) {
    kernels::RmsNorm<T> norm;
    set_rows<T>(norm, o, with_add);
    norm.gamma = o.read<T>(1 + with_add);
    norm.y = o.write<T>(0 + with_add);
    norm.rstd = o.write<T>(1 + with_add);
    return [norm] { kernels::rms_norm(norm); };
}

template <class T>
BoundCall bind_layer_norm(const BoundOperands& o, bool with_add) {
    kernels::LayerNorm<T> norm;
    set_rows<T>(norm, o, with_add);
    norm.gamma = o.read<T>(1 + with_add);
    norm.beta = o.read<T>(2 + with_add);
    norm.y = o.write<T>(0 + with_add);
    norm.mean = o.write<T>(1 + with_add);
    norm.rstd = o.write<T>(2 + with_add);
    return [norm] { kernels::layer_norm(norm); };
}

template <class T>
BoundCall bind_rms_norm_backward(const BoundOperands& o) {
    kernels::RmsNormBackward<T> norm;
    norm.rows = o.read_shape(0).at(0);
    norm.channels = o.read_shape(0).at(1);
    norm.dy = o.read<T>(0);
    norm.x = o.read<T>(1);
    norm.gamma = o.read<T>(2);
    norm.rstd = o.read<T>(3);
    norm.dsum = o.read_count() > 4 ? o.read<T>(4) : nullptr;
    norm.dx = o.write<T>(0);
    norm.dgamma = o.write<T>(1);
    norm.accumulate = o.accumulate();
    norm.scratch = o.scratch();
    return [norm] { kernels::rms_norm_backward(norm); };
}

template <class T>
BoundCall bind_layer_norm_backward(const BoundOperands& o) {
    kernels::LayerNormBackward<T> norm;
    norm.rows = o.read_shape(0).at(0);
    norm.channels = o.read_shape(0).at(1);
    norm.dy = o.read<T>(0);
    norm.x = o.read<T>(1);
    norm.gamma = o.read<T>(2);
    norm.mean = o.read<T>(3);
    norm.rstd = o.read<T>(4);
    norm.dsum = o.read_count() > 5 ? o.read<T>(5) : nullptr;
    norm.dx = o.write<T>(0);
    norm.dgamma = o.write<T>(1);
    norm.dbeta = o.write<T>(2);
    norm.accumulate = o.accumulate();
    norm.scratch = o.scratch();
    return [norm] { kernels::layer_norm_backward(norm); };
}

}  // namespace

template <class T>
BoundCall bind_norm(const BoundOperands& o) {
    switch (o.op().kind) {
        case OpKind::rms_norm:
            return bind_rms_norm<T>(o, false);
        case OpKind::add_rms_norm:
            return bind_rms_norm<T>(o, true);
        case OpKind::rms_norm_backward:
            return bind_rms_norm_backward<T>(o);
        case OpKind::layer_norm:
            return bind_layer_norm<T>(o, false);
        case OpKind::add_layer_norm:
            return bind_layer_norm<T>(o, true);
        default:
            ATOLL_CHECK(o.op().kind == OpKind::layer_norm_backward);
            return bind_layer_norm_backward<T>(o);
    }
}

template BoundCall bind_norm<float>(const BoundOperands&);
template BoundCall bind_norm<double>(const BoundOperands&);

}  // namespace atl
