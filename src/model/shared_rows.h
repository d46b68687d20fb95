// The reduction groups of a rank's parameters: cells (layout/cells.h) of their tensors as rows of the values that
// hold them.
//
// Data parallelism, norms under sequence parallelism, shared key/value heads and tied ends of a pipeline are this one
// rule. A cell that is no run of whole rows of its value fails a check.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layout/cells.h"
#include "model/packed_pieces.h"
#include "model/parallel_shape.h"

namespace atl {

using TensorCells = std::map<std::string, std::vector<Cell>>;  // by logical tensor
TensorCells cut_into_cells(const Layout& layout);

struct SharedRows {
    Range rows;                 // of the stack
    std::vector<Rank> holders;  // sorted: the reduction group
    bool operator==(const SharedRows&) const = default;
};

// All rows of the part, in order; neighbours with the same holders are joined.
std::vector<SharedRows> shared_rows(const PackedPieces& part, const TensorCells& cells);
// The nearly equal share of such rows that falls to one of their holders.
Range share_of(const SharedRows& shared, Rank rank);
// Whether each holder updates its share alone (ParallelShape::zero) …
bool is_update_split(const PackedPieces& part, const SharedRows& shared, const ParallelShape& parallel);
// … and the rows that `rank` updates.
Range updated_rows(const PackedPieces& part, const SharedRows& shared, const ParallelShape& parallel,
                   Rank rank);

}  // namespace atl
