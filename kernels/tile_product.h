// The matrix products of attention: C (+)= A·B on register tiles of kTileRows rows.
//
// A is read one element at a time (broadcast), so any layout with compile-time strides is good: rows of a row-major
// block, or columns of one (its transpose). B is read in vectors along C's columns.
#pragma once

#include "kernels/scratch.h"
#include "kernels/simd.h"

namespace atl::kernels::ATOLL_INSTRUCTION_SET {

// Rows of a matrix and the elements from one to the next.
template <class T>
struct Rows {
    T* data = nullptr;
    std::int64_t stride = 0;

    T* row(std::int64_t index) const { return data + index * stride; }
};

enum class Into { overwrite, accumulate };

// C[kTileRows, Vectors·lanes] (+)= Σ_step A(row, step) · B(step, :), A(row, step) = a[row·RowStride + step·StepStride].
template <int RowStride, int StepStride, int Vectors, class T>
[[gnu::noinline]] void multiply_tile(const T* a, Rows<const T> b, std::int64_t steps, Rows<T> c, Into into) {
    Vec<T> sums[kTileRows][Vectors] = {};
    if (into == Into::accumulate) {
#pragma GCC unroll 16
        for (int row = 0; row < kTileRows; ++row) {
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) sums[row][v] = load(c.row(row) + v * kLanes<T>);
        }
    }
    const T* b_row = b.data;
    for (std::int64_t step = 0; step < steps; ++step) {
        Vec<T> right[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) right[v] = load(b_row + v * kLanes<T>);
#pragma GCC unroll 16
        for (int row = 0; row < kTileRows; ++row) {
            const Vec<T> left = broadcast(a[row * RowStride]);
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) sums[row][v] = fma(left, right[v], sums[row][v]);
        }
        a += StepStride;
        b_row += b.stride;
    }
#pragma GCC unroll 16
    for (int row = 0; row < kTileRows; ++row) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) store(c.row(row) + v * kLanes<T>, sums[row][v]);
    }
}

// The same for any number of columns; whole vectors are computed, so c and b hold columns rounded up to them.
template <int RowStride, int StepStride, class T>
void multiply_rows(const T* a, Rows<const T> b, std::int64_t steps, Rows<T> c, std::int64_t columns,
                   Into into) {
    constexpr std::int64_t kWide = 2 * kLanes<T>;
    std::int64_t column = 0;
    for (; column + kLanes<T> < columns; column += kWide) {
        multiply_tile<RowStride, StepStride, 2>(a, {b.data + column, b.stride}, steps,
                                                {c.data + column, c.stride}, into);
    }
    if (column < columns) {
        multiply_tile<RowStride, StepStride, 1>(a, {b.data + column, b.stride}, steps,
                                                {c.data + column, c.stride}, into);
    }
}

// Columns of B in panels of 2·lanes, each [depth, 2·lanes]: how a transposed matrix is stored, so that products with it
// read consecutive vectors.
template <class T>
inline constexpr std::int64_t kPanelColumns = 2 * kLanes<T>;

// Writes the transpose of source[rows, depth] as panels; rows up to a multiple of kPanelColumns become zero columns.
template <class T>
void pack_transposed(Rows<const T> source, std::int64_t rows, std::int64_t depth, T* panels) {
    for (std::int64_t first = 0; first < round_up(rows, kPanelColumns<T>); first += kLanes<T>) {
        T* to = panels + first / kPanelColumns<T> * depth * kPanelColumns<T> + first % kPanelColumns<T>;
        for (std::int64_t d = 0; d < depth; d += kLanes<T>) {
            const std::int64_t lanes = depth - d < kLanes<T> ? depth - d : kLanes<T>;
            Vec<T> square[kLanes<T>];
#pragma GCC unroll 16
            for (int r = 0; r < kLanes<T>; ++r) {
                square[r] = first + r < rows ? load_first(source.row(first + r) + d, lanes) : Vec<T>{};
            }
            transpose<T>(square);
#pragma GCC unroll 16
            for (int r = 0; r < kLanes<T>; ++r) {
                if (r < lanes) store(to + (d + r) * kPanelColumns<T>, square[r]);
            }
        }
    }
}

// C[kTileRows, columns] = A·B with B in panels; A's rows lie Pitch apart.
template <int Pitch, class T>
void multiply_panels(const T* a, const T* panels, std::int64_t depth, Rows<T> c, std::int64_t columns) {
    for (std::int64_t column = 0; column < columns; column += kPanelColumns<T>) {
        const std::int64_t left = columns - column;
        multiply_rows<Pitch, 1>(a, Rows<const T>{panels + column * depth, kPanelColumns<T>}, depth,
                                Rows<T>{c.data + column, c.stride},
                                left < kPanelColumns<T> ? left : kPanelColumns<T>, Into::overwrite);
    }
}

// Copies rows, times `factor`, to rows Pitch apart, and zeroes the rest up to `padded_rows` and whole vectors.
template <int Pitch, class T>
void pack_rows(Rows<const T> source, std::int64_t rows, std::int64_t width, std::int64_t padded_rows,
               T factor, T* to) {
    for (std::int64_t r = 0; r < padded_rows; ++r) {
        T* out = to + r * Pitch;
        for_vectors<T>(width, [&](std::int64_t d, std::int64_t lanes) {
            store(out + d, r < rows ? load_first(source.row(r) + d, lanes) * factor : Vec<T>{});
        });
    }
}

}  // namespace atl::kernels::ATOLL_INSTRUCTION_SET
