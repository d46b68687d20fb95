#include "kernels/cross_entropy_parallel.h"

#include "core/check.h"
#include "kernels/dispatch.h"

namespace atl::kernels {

template <class T>
void logits_max(const LogitsMax<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}

template <class T>
void logits_sum(const LogitsSum<T>& operation, InstructionSet set) {
    ATOLL_CHECK_LE(operation.first_row + operation.vocab, operation.all_rows);
    for (std::int64_t row = 0; row < operation.rows; ++row) {
        ATOLL_CHECK_LT(operation.targets[row], operation.all_rows, "target of row {}", row);
    }
    dispatch(operation, set);
}

template <class T>
void cross_entropy_parallel(const CrossEntropyParallel<T>& operation, InstructionSet set) {
    dispatch(operation, set);
}

template void logits_max(const LogitsMax<float>&, InstructionSet);
template void logits_max(const LogitsMax<double>&, InstructionSet);
template void logits_sum(const LogitsSum<float>&, InstructionSet);
template void logits_sum(const LogitsSum<double>&, InstructionSet);
template void cross_entropy_parallel(const CrossEntropyParallel<float>&, InstructionSet);
template void cross_entropy_parallel(const CrossEntropyParallel<double>&, InstructionSet);

}  // namespace atl::kernels
