#include "kernels/cross_entropy.h"

#include "core/check.h"
#include "kernels/cross_entropy_rows.h"
#include "kernels/dispatch.h"

namespace atl::kernels {
namespace {

template <class T>
double run(CrossEntropyRows<T> rows, InstructionSet set) {
    for (std::int64_t row = 0; row < rows.rows; ++row) {
        ATOLL_CHECK_LT(rows.targets[row], rows.vocab, "target of row {}", row);
    }
    double loss = 0;
    rows.loss = &loss;
    dispatch(rows, set);
    return loss;
}

}  // namespace

template <class T>
double cross_entropy(const CrossEntropy<T>& operation, InstructionSet set) {
    return run(CrossEntropyRows<T>{operation.rows, operation.vocab, operation.logits, operation.logits,
                                   operation.targets, nullptr},
               set);
}

template <class T>
double cross_entropy_loss(const CrossEntropyLoss<T>& operation, InstructionSet set) {
    return run(CrossEntropyRows<T>{operation.rows, operation.vocab, operation.logits, nullptr,
                                   operation.targets, nullptr},
               set);
}

template double cross_entropy(const CrossEntropy<float>&, InstructionSet);
template double cross_entropy(const CrossEntropy<double>&, InstructionSet);
template double cross_entropy_loss(const CrossEntropyLoss<float>&, InstructionSet);
template double cross_entropy_loss(const CrossEntropyLoss<double>&, InstructionSet);

}  // namespace atl::kernels
