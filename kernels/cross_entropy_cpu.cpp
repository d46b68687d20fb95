// Cross-entropy by rows. A row is read in blocks that fit the first-level cache, with a running maximum; each
// block's exponentials are relative to the maximum so far and get their final factor in a second pass.
#include "kernels/cross_entropy.h"

#include "kernels/cross_entropy_rows.h"
#include "kernels/dispatch.h"
#include "kernels/parallel.h"
#include "kernels/scratch.h"
#include "kernels/softmax_rows.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

constexpr std::int64_t kMostBlocks = 64;

inline std::int64_t block_length(std::int64_t vocab) {
    constexpr std::int64_t kUsualLength = 2048;
    const std::int64_t needed = (vocab + kMostBlocks - 1) / kMostBlocks;
    return needed < kUsualLength ? kUsualLength : needed;
}

template <class T>
T exponential_of(T x) {
    return exponential<T>(broadcast(x))[0];
}

template <class T>
double row_loss(const T* logits, T* dlogits, std::int64_t vocab, std::int32_t target) {
    const std::int64_t length = block_length(vocab);
    const T target_logit = logits[target];
    T maxima[kMostBlocks];  // what each block's terms are relative to
    T maximum = -static_cast<T>(INFINITY);
    double sum = 0;
    for (std::int64_t first = 0; first < vocab; first += length) {
        const std::int64_t count = vocab - first < length ? vocab - first : length;
        const T before = maximum;
        maximum = largest_of(logits + first, count, maximum);
        maxima[first / length] = maximum;
        T* terms = dlogits == nullptr ? nullptr : dlogits + first;
        sum =
            sum * exponential_of(before - maximum) + sum_exponentials(logits + first, count, maximum, terms);
    }
    if (dlogits != nullptr) {
        for (std::int64_t first = 0; first < vocab; first += length) {
            const std::int64_t count = vocab - first < length ? vocab - first : length;
            const T factor = static_cast<T>(exponential_of(maxima[first / length] - maximum) / sum);
            scale_values(dlogits + first, count, factor);
        }
        dlogits[target] -= 1;
    }
    return static_cast<double>(maximum) + std::log(sum) - static_cast<double>(target_logit);
}

template <class T>
void run(const CrossEntropyRows<T>& op) {
    double losses[kRowPieces] = {};
    parallel_tasks(kRowPieces, kRowPieces, [&](std::int64_t part, int) {
        const Range range = piece(op.rows, kRowPieces, part);
        double loss = 0;
        for (std::int64_t row = range.begin; row < range.end; ++row) {
            T* dlogits = op.dlogits == nullptr ? nullptr : op.dlogits + row * op.vocab;
            if (op.targets[row] >= 0) {
                loss += row_loss(op.logits + row * op.vocab, dlogits, op.vocab, op.targets[row]);
            } else if (dlogits != nullptr) {
                for (std::int64_t v = 0; v < op.vocab; ++v) dlogits[v] = 0;
            }
        }
        losses[part] = loss;
    });
    *op.loss = 0;
    for (const double loss : losses) *op.loss += loss;
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const CrossEntropyRows<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const CrossEntropyRows<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
