// Cells: what is left after cutting the overlapping boxes of one tensor. A cell is held whole by each of its
// holders and by nobody else, so its holders are its reduction group: data parallelism, norms replicated under
// sequence parallelism, shared key/value heads and tied embeddings are this one rule.
//
// Cost: (product over dimensions of the number of different box ends) x boxes; neighbours with the same holders
// are joined again, so the number of cells is small.
#pragma once

#include <vector>

#include "layout/layout.h"

namespace atl {

struct Cell {
    Box box;
    std::vector<Rank> holders;  // sorted, at least one
    bool operator==(const Cell&) const = default;
};

// Disjoint cells whose union is the union of all boxes, ordered by where they begin (row-major).
std::vector<Cell> cut_into_cells(const TensorLayout& layout);

}  // namespace atl
