#include "engine/bind.h"
#include "kernels/activation.h"
#include "kernels/vector_ops.h"

namespace atl {

template <class T>
BoundCall bind_elementwise(const BoundOperands& o) {
    const std::int64_t count = element_count(o.written_shape(0));
    switch (o.op().kind) {
        case OpKind::swiglu: {
            const kernels::Swiglu<T> swiglu{o.written_shape(0).at(0), o.written_shape(0).at(1), o.read<T>(0),
                                            o.write<T>(0)};
            return [swiglu] { kernels::swiglu(swiglu); };
        }
        case OpKind::swiglu_backward: {
            const kernels::SwigluBackward<T> swiglu{o.read_shape(0).at(0), o.read_shape(0).at(1),
                                                    o.read<T>(0), o.read<T>(1), o.write<T>(0)};
            return [swiglu] { kernels::swiglu_backward(swiglu); };
        }
        case OpKind::gelu: {
            const kernels::Gelu<T> gelu{count, o.read<T>(0), o.write<T>(0)};
            return [gelu] { kernels::gelu(gelu); };
        }
        case OpKind::gelu_backward: {
            const kernels::GeluBackward<T> gelu{count, o.read<T>(0), o.read<T>(1), o.write<T>(0)};
            return [gelu] { kernels::gelu_backward(gelu); };
        }
        default: {
            ATOLL_CHECK(o.op().kind == OpKind::add);
            const kernels::Add<T> add{count, o.read<T>(0), o.read<T>(1), o.write<T>(0)};
            return [add] { kernels::add(add); };
        }
    }
}

template BoundCall bind_elementwise<float>(const BoundOperands&);
template BoundCall bind_elementwise<double>(const BoundOperands&);

}  // namespace atl
