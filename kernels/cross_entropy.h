// Cross-entropy of logits against target tokens: the sum of token losses, and its gradient in place.
//
//   loss = Σ_t logsumexp(logits[t]) − logits[t, target[t]],  dlogits = softmax(logits) − onehot(target)
//
// Rows with target < 0 have no loss and a zero gradient row. Sums are f64 in an order that doesn't depend on
// threads. A NaN or Inf in a row with a loss makes the loss non-finite. T is float or double.
// Threads: OpenMP of the caller over rows. Throws CheckError for a target ≥ vocab. Cost: each logit is read
// twice and written twice with the gradient, read once without; one exponential per logit.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels {

template <class T>
struct CrossEntropy {
    std::int64_t rows = 0;
    std::int64_t vocab = 0;
    T* logits = nullptr;                    // [rows, vocab]; becomes dlogits
    const std::int32_t* targets = nullptr;  // [rows]
};

template <class T>
struct CrossEntropyLoss {
    std::int64_t rows = 0;
    std::int64_t vocab = 0;
    const T* logits = nullptr;
    const std::int32_t* targets = nullptr;
};

// Both return the sum of token losses.
template <class T>
double cross_entropy(const CrossEntropy<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
double cross_entropy_loss(const CrossEntropyLoss<T>& operation, InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
