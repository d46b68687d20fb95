#include "kernels/muon.h"

#include <algorithm>
#include <cmath>

#include "kernels/dispatch.h"

namespace atl::kernels {

template <class T>
void muon_momentum(const MuonMomentum<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}

template <class T>
void muon_update(const MuonUpdate<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}

template <class T>
void scale_by(const ScaleBy<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}

double muon_scale(std::int64_t rows, std::int64_t columns) {
    return 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
}

template void muon_momentum(const MuonMomentum<float>&, InstructionSet);
template void muon_momentum(const MuonMomentum<double>&, InstructionSet);
template void muon_update(const MuonUpdate<float>&, InstructionSet);
template void muon_update(const MuonUpdate<double>&, InstructionSet);
template void scale_by(const ScaleBy<float>&, InstructionSet);
template void scale_by(const ScaleBy<double>&, InstructionSet);

}  // namespace atl::kernels
