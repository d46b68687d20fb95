// Pieces of logical tensors that lie one behind the other in one value, rows stacked: linear weights that share their
// input, whole or as one rank of many holds them.
//
// Rows are counted over the stack: of a vector they are its elements. Plain data and functions; a row outside the
// stack fails a check.
#pragma once

#include <string>
#include <vector>

#include "model/tensors.h"

namespace atl {

struct TensorPiece {
    TensorSpec tensor;
    Box box;  // of the tensor
    std::string
        name;  // of the value that holds it: the tensor's, with the box where the stack has several of it
    bool operator==(const TensorPiece&) const = default;
};

struct PackedPieces {
    std::string name;  // of a single piece its own
    std::vector<TensorPiece> pieces;

    std::int64_t rows() const;
    std::int64_t row_elements() const;  // of one row
    Shape shape() const;
    bool decays() const;
    bool hidden() const;
    bool operator==(const PackedPieces&) const = default;
};

PackedPieces whole_tensors(std::string name, const std::vector<TensorSpec>& tensors);

// The given rows, in their order; neighbours from one tensor are joined. Pieces keep their names. No rows at all give
// one empty piece.
PackedPieces select_rows(const PackedPieces& packed, const std::vector<Range>& rows);
// Some columns of every piece; all are matrices.
PackedPieces select_columns(const PackedPieces& packed, const Range& columns);
// Names every piece anew, as `name` above says.
void name_pieces(PackedPieces& packed);

}  // namespace atl
