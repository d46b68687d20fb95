// The matrix products: libtorch's, through out= forms on tensors that are views of the arenas.
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "engine/bind.h"
#include "engine/tensor_over.h"
#include "kernels/vector_ops.h"

namespace atl {
namespace {

template <class T>
BoundCall bind_linear_forward(const BoundOperands& o) {
    at::Tensor y = tensor_over(o.write<T>(0), o.written_shape(0));
    const at::Tensor x = tensor_over(o.read<T>(0), o.read_shape(0));
    const at::Tensor weight = tensor_over(o.read<T>(1), o.read_shape(1)).t();
    if (o.read_count() == 2) {
        return [y, x, weight]() mutable { at::mm_out(y, x, weight); };
    }
    const at::Tensor bias = tensor_over(o.read<T>(2), o.read_shape(2));
    return [y, x, weight, bias]() mutable { at::addmm_out(y, bias, x, weight); };
}

template <class T>
BoundCall bind_linear_backward_input(const BoundOperands& o) {
    at::Tensor dx = tensor_over(o.write<T>(0), o.written_shape(0));
    const at::Tensor dy = tensor_over(o.read<T>(0), o.read_shape(0));
    const at::Tensor weight = tensor_over(o.read<T>(1), o.read_shape(1));
    return [dx, dy, weight]() mutable { at::mm_out(dx, dy, weight); };
}

template <class T>
BoundCall bind_linear_backward_weight(const BoundOperands& o) {
    at::Tensor dw = tensor_over(o.write<T>(0), o.written_shape(0));
    const at::Tensor dy = tensor_over(o.read<T>(0), o.read_shape(0)).t();
    const at::Tensor x = tensor_over(o.read<T>(1), o.read_shape(1));
    BoundCall product;
    if (o.accumulate()) {
        product = [dw, dy, x]() mutable { at::addmm_out(dw, dw, dy, x); };
    } else {
        product = [dw, dy, x]() mutable { at::mm_out(dw, dy, x); };
    }
    if (o.write_count() == 1) return product;
    const kernels::BiasGradient<T> bias{o.read_shape(0).at(0), o.read_shape(0).at(1), o.read<T>(0),
                                        o.write<T>(1), o.accumulate()};
    return [product, bias] {
        product();
        kernels::bias_gradient(bias);
    };
}

}  // namespace

template <class T>
BoundCall bind_linear(const BoundOperands& o) {
    switch (o.op().kind) {
        case OpKind::linear:
            return bind_linear_forward<T>(o);
        case OpKind::linear_backward_input:
            return bind_linear_backward_input<T>(o);
        default:
            ATOLL_CHECK(o.op().kind == OpKind::linear_backward_weight);
            return bind_linear_backward_weight<T>(o);
    }
}

template BoundCall bind_linear<float>(const BoundOperands&);
template BoundCall bind_linear<double>(const BoundOperands&);

}  // namespace atl
