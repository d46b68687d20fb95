// RMSNorm and LayerNorm, forward and backward: one row at a time, rows in fixed pieces.
#include "kernels/norm.h"

#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/parallel.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

template <class T>
T inverse_root(T variance, double epsilon) {
    return static_cast<T>(1 / std::sqrt(static_cast<double>(variance) + epsilon));
}

// Returns the row to normalise: x itself, or x + delta written to sum.
template <class T>
const T* add_row(const T* x, const T* delta, T* sum, std::int64_t channels) {
    if (delta == nullptr) return x;
    for_vectors<T>(channels, [&](std::int64_t c, std::int64_t lanes) {
        store_first(sum + c, load_first(x + c, lanes) + load_first(delta + c, lanes), lanes);
    });
    return sum;
}

template <class T>
T* offset(T* base, std::int64_t elements) {
    return base == nullptr ? nullptr : base + elements;
}

template <class T>
void normalise_row(const RmsNorm<T>& op, std::int64_t row) {
    const std::int64_t at = row * op.channels;
    const T* x = add_row(op.x + at, offset(op.delta, at), offset(op.sum, at), op.channels);
    Vec<T> squares{};
    for_vectors<T>(op.channels, [&](std::int64_t c, std::int64_t lanes) {
        const Vec<T> value = load_first(x + c, lanes);
        squares = fma(value, value, squares);
    });
    const T rstd = inverse_root(sum_of_lanes<T>(squares) / static_cast<T>(op.channels), op.epsilon);
    op.rstd[row] = rstd;
    for_vectors<T>(op.channels, [&](std::int64_t c, std::int64_t lanes) {
        store_first(op.y + at + c, load_first(x + c, lanes) * rstd * load_first(op.gamma + c, lanes), lanes);
    });
}

template <class T>
void normalise_row(const LayerNorm<T>& op, std::int64_t row) {
    const std::int64_t at = row * op.channels;
    const T* x = add_row(op.x + at, offset(op.delta, at), offset(op.sum, at), op.channels);
    Vec<T> total{};
    for_vectors<T>(op.channels,
                   [&](std::int64_t c, std::int64_t lanes) { total += load_first(x + c, lanes); });
    const T mean = sum_of_lanes<T>(total) / static_cast<T>(op.channels);
    Vec<T> squares{};
    for_vectors<T>(op.channels, [&](std::int64_t c, std::int64_t lanes) {
        const Vec<T> centred = load_first(x + c, lanes, mean) - mean;  // lanes beyond the row add 0
        squares = fma(centred, centred, squares);
    });
    const T rstd = inverse_root(sum_of_lanes<T>(squares) / static_cast<T>(op.channels), op.epsilon);
    op.mean[row] = mean;
    op.rstd[row] = rstd;
    for_vectors<T>(op.channels, [&](std::int64_t c, std::int64_t lanes) {
        const Vec<T> normal = (load_first(x + c, lanes) - mean) * rstd;
        store_first(op.y + at + c,
                    fma(normal, load_first(op.gamma + c, lanes), load_first(op.beta + c, lanes)), lanes);
    });
}

// dx = rstd · (g − x̂ · mean(g·x̂)) with g = dy·gamma, x̂ = x·rstd; adds dy·x̂ to dgamma.
template <class T>
void differentiate_row(const RmsNormBackward<T>& op, std::int64_t row, T* dgamma, T*) {
    const std::int64_t at = row * op.channels;
    const T rstd = op.rstd[row];
    Vec<T> products{};
    for_vectors<T>(op.channels, [&](std::int64_t c, std::int64_t lanes) {
        const Vec<T> dy = load_first(op.dy + at + c, lanes);
        const Vec<T> normal = load_first(op.x + at + c, lanes) * rstd;
        products = fma(dy * load_first(op.gamma + c, lanes), normal, products);
        store_first(dgamma + c, fma(dy, normal, load_first(dgamma + c, lanes)), lanes);
    });
    const T mean_product = sum_of_lanes<T>(products) / static_cast<T>(op.channels);
    for_vectors<T>(op.channels, [&](std::int64_t c, std::int64_t lanes) {
        const Vec<T> gradient = load_first(op.dy + at + c, lanes) * load_first(op.gamma + c, lanes);
        const Vec<T> normal = load_first(op.x + at + c, lanes) * rstd;
        Vec<T> dx = (gradient - normal * mean_product) * rstd;
        if (op.dsum != nullptr) dx += load_first(op.dsum + at + c, lanes);
        store_first(op.dx + at + c, dx, lanes);
    });
}

// dx = rstd · (g − mean(g) − x̂ · mean(g·x̂)) with x̂ = (x − mean)·rstd.
template <class T>
void differentiate_row(const LayerNormBackward<T>& op, std::int64_t row, T* dgamma, T* dbeta) {
    const std::int64_t at = row * op.channels;
    const T rstd = op.rstd[row];
    const T mean = op.mean[row];
    Vec<T> gradients{};
    Vec<T> products{};
    for_vectors<T>(op.channels, [&](std::int64_t c, std::int64_t lanes) {
        const Vec<T> dy = load_first(op.dy + at + c, lanes);
        const Vec<T> normal = (load_first(op.x + at + c, lanes) - mean) * rstd;
        const Vec<T> gradient = dy * load_first(op.gamma + c, lanes);
        gradients += gradient;
        products = fma(gradient, normal, products);
        store_first(dgamma + c, fma(dy, normal, load_first(dgamma + c, lanes)), lanes);
        store_first(dbeta + c, dy + load_first(dbeta + c, lanes), lanes);
    });
    const T mean_gradient = sum_of_lanes<T>(gradients) / static_cast<T>(op.channels);
    const T mean_product = sum_of_lanes<T>(products) / static_cast<T>(op.channels);
    for_vectors<T>(op.channels, [&](std::int64_t c, std::int64_t lanes) {
        const Vec<T> gradient = load_first(op.dy + at + c, lanes) * load_first(op.gamma + c, lanes);
        const Vec<T> normal = (load_first(op.x + at + c, lanes) - mean) * rstd;
        Vec<T> dx = (gradient - mean_gradient - normal * mean_product) * rstd;
        if (op.dsum != nullptr) dx += load_first(op.dsum + at + c, lanes);
        store_first(op.dx + at + c, dx, lanes);
    });
}

template <class Operation>
void normalise(const Operation& op) {
    parallel_ranges(op.rows * op.channels, op.channels, [&](Range range) {
        for (std::int64_t row = range.begin / op.channels; row * op.channels < range.end; ++row)
            normalise_row(op, row);
    });
}

// The pieces' sums, in order, over or onto the gradient.
template <class T>
void combine_pieces(const T* pieces, std::int64_t channels, bool accumulate, T* gradient) {
    for_vectors<T>(channels, [&](std::int64_t c, std::int64_t lanes) {
        Vec<T> sum{};
        for (std::int64_t part = 0; part < kRowPieces; ++part)
            sum += load_first(pieces + part * channels + c, lanes);
        store_first(gradient + c, accumulate ? load_first(gradient + c, lanes) + sum : sum, lanes);
    });
}

template <class T, class Operation>
void differentiate(const Operation& op, T* dbeta) {
    T* dgamma_pieces = reinterpret_cast<T*>(op.scratch);
    T* dbeta_pieces = dgamma_pieces + kRowPieces * op.channels;
    parallel_tasks(kRowPieces, kRowPieces, [&](std::int64_t part, int) {
        T* dgamma = dgamma_pieces + part * op.channels;
        T* dbeta_part = dbeta_pieces + part * op.channels;
        for (std::int64_t c = 0; c < op.channels; ++c) dgamma[c] = dbeta_part[c] = 0;
        const Range rows = piece(op.rows, kRowPieces, part);
        for (std::int64_t row = rows.begin; row < rows.end; ++row)
            differentiate_row(op, row, dgamma, dbeta_part);
    });
    combine_pieces(dgamma_pieces, op.channels, op.accumulate, op.dgamma);
    if (dbeta != nullptr) combine_pieces(dbeta_pieces, op.channels, op.accumulate, dbeta);
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const RmsNorm<float>& op) {
    ATOLL_INSTRUCTION_SET::normalise(op);
}
template <>
void run_variant<kInstructionSet>(const RmsNorm<double>& op) {
    ATOLL_INSTRUCTION_SET::normalise(op);
}
template <>
void run_variant<kInstructionSet>(const LayerNorm<float>& op) {
    ATOLL_INSTRUCTION_SET::normalise(op);
}
template <>
void run_variant<kInstructionSet>(const LayerNorm<double>& op) {
    ATOLL_INSTRUCTION_SET::normalise(op);
}
template <>
void run_variant<kInstructionSet>(const RmsNormBackward<float>& op) {
    ATOLL_INSTRUCTION_SET::differentiate<float>(op, nullptr);
}
template <>
void run_variant<kInstructionSet>(const RmsNormBackward<double>& op) {
    ATOLL_INSTRUCTION_SET::differentiate<double>(op, nullptr);
}
template <>
void run_variant<kInstructionSet>(const LayerNormBackward<float>& op) {
    ATOLL_INSTRUCTION_SET::differentiate(op, op.dbeta);
}
template <>
void run_variant<kInstructionSet>(const LayerNormBackward<double>& op) {
    ATOLL_INSTRUCTION_SET::differentiate(op, op.dbeta);
}

}  // namespace atl::kernels
