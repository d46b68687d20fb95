#include "model/shared_rows.h"

#include <algorithm>

#include "core/check.h"

namespace atl {

TensorCells cut_into_cells(const Layout& layout) {
    TensorCells cells;
    for (const auto& [tensor, boxes] : layout) cells[tensor] = cut_into_cells(boxes);
    return cells;
}

std::vector<SharedRows> shared_rows(const PackedPieces& part, const TensorCells& cells) {
    std::vector<SharedRows> shared;
    std::int64_t offset = 0;
    for (const auto& piece : part.pieces) {
        const auto first_row = piece.box.ranges.front().begin;
        for (const auto& cell : cells.at(piece.tensor.name)) {
            if (!intersect(cell.box, piece.box)) continue;
            auto rows_of_piece = piece.box;
            rows_of_piece.ranges.front() = cell.box.ranges.front();
            ATOLL_CHECK(cell.box == rows_of_piece, "{} {} is no run of rows of {}", piece.tensor.name,
                        to_string(cell.box), to_string(piece.box));
            const auto [begin, end] = cell.box.ranges.front();
            const Range rows{offset + begin - first_row, offset + end - first_row};
            if (!shared.empty() && shared.back().holders == cell.holders &&
                shared.back().rows.end == rows.begin)
                shared.back().rows.end = rows.end;
            else
                shared.push_back({rows, cell.holders});
        }
        offset += piece.box.ranges.front().size();
    }
    return shared;
}

Range share_of(const SharedRows& shared, Rank rank) {
    const auto place = std::ranges::find(shared.holders, rank);
    ATOLL_CHECK(place != shared.holders.end(), "rank {}", rank);
    const auto share =
        nearly_equal_range(shared.rows.size(), static_cast<std::int32_t>(shared.holders.size()),
                           static_cast<std::int32_t>(place - shared.holders.begin()));
    return {shared.rows.begin + share.begin, shared.rows.begin + share.end};
}

bool is_update_split(const PackedPieces& part, const SharedRows& shared, const ParallelShape& parallel) {
    return parallel.zero && shared.holders.size() > 1 && part.shape().size() == 2;
}

Range updated_rows(const PackedPieces& part, const SharedRows& shared, const ParallelShape& parallel,
                   Rank rank) {
    return is_update_split(part, shared, parallel) ? share_of(shared, rank) : shared.rows;
}

}  // namespace atl
