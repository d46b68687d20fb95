#include "kernels/norm.h"

#include "core/check.h"
#include "kernels/dispatch.h"

namespace atl::kernels {

template <class T>
void rms_norm(const RmsNorm<T>& operation, InstructionSet set) {
    ATOLL_CHECK_EQ(operation.delta == nullptr, operation.sum == nullptr, "delta and sum come together");
    dispatch(operation, set);
}

template <class T>
void rms_norm_backward(const RmsNormBackward<T>& operation, InstructionSet set) {
    ATOLL_CHECK(operation.scratch != nullptr);
    dispatch(operation, set);
}

template <class T>
void layer_norm(const LayerNorm<T>& operation, InstructionSet set) {
    ATOLL_CHECK_EQ(operation.delta == nullptr, operation.sum == nullptr, "delta and sum come together");
    dispatch(operation, set);
}

template <class T>
void layer_norm_backward(const LayerNormBackward<T>& operation, InstructionSet set) {
    ATOLL_CHECK(operation.scratch != nullptr);
    dispatch(operation, set);
}

template void rms_norm(const RmsNorm<float>&, InstructionSet);
template void rms_norm(const RmsNorm<double>&, InstructionSet);
template void rms_norm_backward(const RmsNormBackward<float>&, InstructionSet);
template void rms_norm_backward(const RmsNormBackward<double>&, InstructionSet);
template void layer_norm(const LayerNorm<float>&, InstructionSet);
template void layer_norm(const LayerNorm<double>&, InstructionSet);
template void layer_norm_backward(const LayerNormBackward<float>&, InstructionSet);
template void layer_norm_backward(const LayerNormBackward<double>&, InstructionSet);

}  // namespace atl::kernels
