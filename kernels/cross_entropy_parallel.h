// Cross-entropy of logits whose vocabulary is cut by rows over several ranks: what each does with its columns.
//
//   logits_max             max[t] of the columns here; the ranks' maximum m[t] is taken between the calls
//   logits_sum             sums[t] = Σ exp(logit − m) of the columns here, sums[T + t] = target logit − m, or 0 if the
//                          target is elsewhere; the ranks' sums are added up between the calls
//   cross_entropy_parallel loss = Σ_t log(sum) − (target logit − m), the same on every rank; in place, if asked for,
//                          the columns here of dlogits = exp(logit − m) / sum − onehot(target)
//
// Source: Shoeybi et al., "Megatron-LM" (2019), section 3. Rows with target < 0 have no loss and a zero gradient row;
// NaN and Inf make the loss of their row non-finite on every rank. T is float or double.
// Threads: OpenMP of the caller over rows; results don't depend on their number. Throws CheckError for a target
// outside the whole vocabulary. Cost: each logit is read three times and written once, two exponentials per logit.
#pragma once

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels {

template <class T>
struct LogitsMax {
    std::int64_t rows = 0;
    std::int64_t vocab = 0;  // columns here
    const T* logits = nullptr;
    T* max = nullptr;  // [rows]
};

template <class T>
struct LogitsSum {
    std::int64_t rows = 0;
    std::int64_t vocab = 0;
    std::int64_t first_row = 0;  // of the vocabulary here
    std::int64_t all_rows = 0;   // of the whole vocabulary
    const T* logits = nullptr;
    const std::int32_t* targets = nullptr;  // [rows], of the whole vocabulary
    const T* max = nullptr;
    T* sums = nullptr;  // [2 · rows]
};

template <class T>
struct CrossEntropyParallel {
    std::int64_t rows = 0;
    std::int64_t vocab = 0;
    std::int64_t first_row = 0;
    const T* logits = nullptr;
    T* dlogits = nullptr;  // null: the loss alone; otherwise the logits' own memory
    const std::int32_t* targets = nullptr;
    const T* max = nullptr;
    const T* sums = nullptr;
    double* loss = nullptr;  // one number
};

template <class T>
void logits_max(const LogitsMax<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void logits_sum(const LogitsSum<T>& operation, InstructionSet set = best_instruction_set());
template <class T>
void cross_entropy_parallel(const CrossEntropyParallel<T>& operation,
                            InstructionSet set = best_instruction_set());

}  // namespace atl::kernels
