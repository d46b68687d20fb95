#include "kernels/activation.h"

#include "kernels/dispatch.h"

namespace atl::kernels {

template <class T>
void swiglu(const Swiglu<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}
template <class T>
void swiglu_backward(const SwigluBackward<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}
template <class T>
void gelu(const Gelu<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}
template <class T>
void gelu_backward(const GeluBackward<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}

template void swiglu(const Swiglu<float>&, InstructionSet);
template void swiglu(const Swiglu<double>&, InstructionSet);
template void swiglu_backward(const SwigluBackward<float>&, InstructionSet);
template void swiglu_backward(const SwigluBackward<double>&, InstructionSet);
template void gelu(const Gelu<float>&, InstructionSet);
template void gelu(const Gelu<double>&, InstructionSet);
template void gelu_backward(const GeluBackward<float>&, InstructionSet);
template void gelu_backward(const GeluBackward<double>&, InstructionSet);

}  // namespace atl::kernels
