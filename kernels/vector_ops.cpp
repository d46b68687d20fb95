#include "kernels/vector_ops.h"

#include "kernels/dispatch.h"

namespace atl::kernels {

template <class T>
void add(const Add<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}
template <class T>
void bias_gradient(const BiasGradient<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}

template void add(const Add<float>&, InstructionSet);
template void add(const Add<double>&, InstructionSet);
template void bias_gradient(const BiasGradient<float>&, InstructionSet);
template void bias_gradient(const BiasGradient<double>&, InstructionSet);

}  // namespace atl::kernels
