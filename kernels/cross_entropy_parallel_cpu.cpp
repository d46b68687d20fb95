// Cross-entropy over a cut vocabulary, row by row. Sums run over blocks, so that a long row of floats loses no more
// than a short one.
#include "kernels/cross_entropy_parallel.h"

#include "kernels/dispatch.h"
#include "kernels/parallel.h"
#include "kernels/scratch.h"
#include "kernels/softmax_rows.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

constexpr std::int64_t kBlockLength = 2048;

template <class Body>
void for_rows(std::int64_t rows, Body body) {
    parallel_tasks(kRowPieces, kRowPieces, [&](std::int64_t part, int) {
        const Range range = piece(rows, kRowPieces, part);
        for (std::int64_t row = range.begin; row < range.end; ++row) body(row, part);
    });
}

template <class T>
void run(const LogitsMax<T>& op) {
    for_rows(op.rows, [&](std::int64_t row, std::int64_t) {
        op.max[row] = largest_of(op.logits + row * op.vocab, op.vocab, -static_cast<T>(INFINITY));
    });
}

template <class T>
double row_sum(const T* logits, std::int64_t vocab, T maximum) {
    double sum = 0;
    for (std::int64_t first = 0; first < vocab; first += kBlockLength) {
        const std::int64_t count = vocab - first < kBlockLength ? vocab - first : kBlockLength;
        sum += sum_exponentials<T>(logits + first, count, maximum, nullptr);
    }
    return sum;
}

template <class T>
void run(const LogitsSum<T>& op) {
    for_rows(op.rows, [&](std::int64_t row, std::int64_t) {
        const T* logits = op.logits + row * op.vocab;
        const std::int64_t target = op.targets[row] - op.first_row;
        const bool has_loss = op.targets[row] >= 0;
        const bool is_here = has_loss && target >= 0 && target < op.vocab;
        op.sums[row] = has_loss ? static_cast<T>(row_sum(logits, op.vocab, op.max[row])) : T{0};
        op.sums[op.rows + row] = is_here ? logits[target] - op.max[row] : T{0};
    });
}

template <class T>
void row_gradient(const CrossEntropyParallel<T>& op, std::int64_t row) {
    const T* logits = op.logits + row * op.vocab;
    T* dlogits = op.dlogits + row * op.vocab;
    if (op.targets[row] < 0) {
        for (std::int64_t v = 0; v < op.vocab; ++v) dlogits[v] = 0;
        return;
    }
    const T factor = 1 / op.sums[row];
    for_vectors<T>(op.vocab, [&](std::int64_t i, std::int64_t lanes) {
        const Vec<T> term = exponential<T>(load_first(logits + i, lanes) - op.max[row]);
        store_first(dlogits + i, term * factor, lanes);
    });
    const std::int64_t target = op.targets[row] - op.first_row;
    if (target >= 0 && target < op.vocab) dlogits[target] -= 1;
}

template <class T>
void run(const CrossEntropyParallel<T>& op) {
    double losses[kRowPieces] = {};
    for_rows(op.rows, [&](std::int64_t row, std::int64_t part) {
        if (op.targets[row] >= 0)
            losses[part] += std::log(static_cast<double>(op.sums[row])) - op.sums[op.rows + row];
        if (op.dlogits != nullptr) row_gradient(op, row);
    });
    *op.loss = 0;
    for (const double loss : losses) *op.loss += loss;
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const LogitsMax<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const LogitsMax<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const LogitsSum<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const LogitsSum<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const CrossEntropyParallel<float>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const CrossEntropyParallel<double>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
