#include "model/packed_pieces.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

// Appends a piece, or lets the last one grow over it.
void append_joined(std::vector<TensorPiece>& pieces, TensorPiece piece) {
    if (!pieces.empty() && pieces.back().tensor.name == piece.tensor.name &&
        pieces.back().box.ranges.front().end == piece.box.ranges.front().begin)
        pieces.back().box.ranges.front().end = piece.box.ranges.front().end;
    else
        pieces.push_back(std::move(piece));
}

}  // namespace

std::int64_t PackedPieces::rows() const {
    std::int64_t rows = 0;
    for (const auto& piece : pieces) rows += piece.box.ranges.front().size();
    return rows;
}

std::int64_t PackedPieces::row_elements() const {
    Shape row = pieces.front().box.shape();
    row.front() = 1;
    return element_count(row);
}

Shape PackedPieces::shape() const {
    Shape shape = pieces.front().box.shape();
    shape.front() = rows();
    return shape;
}

bool PackedPieces::decays() const {
    for (const auto& piece : pieces) ATOLL_CHECK_EQ(piece.tensor.decays, pieces.front().tensor.decays);
    return pieces.front().tensor.decays;
}
bool PackedPieces::hidden() const {
    for (const auto& piece : pieces) ATOLL_CHECK_EQ(piece.tensor.hidden, pieces.front().tensor.hidden);
    return pieces.front().tensor.hidden;
}

PackedPieces whole_tensors(std::string name, const std::vector<TensorSpec>& tensors) {
    PackedPieces packed{std::move(name), {}};
    for (const auto& tensor : tensors)
        packed.pieces.push_back({tensor, Box::whole(tensor.shape), tensor.name});
    return packed;
}

PackedPieces select_rows(const PackedPieces& packed, const std::vector<Range>& rows) {
    PackedPieces selected{packed.name, {}};
    for (const auto& wanted : rows) {
        std::int64_t found = 0, offset = 0;
        for (const auto& piece : packed.pieces) {
            auto part = piece;
            auto& range = part.box.ranges.front();
            const auto begin = range.begin, size = range.size();
            range = {begin + std::max<std::int64_t>(wanted.begin - offset, 0),
                     begin + std::min(wanted.end - offset, size)};
            offset += size;
            if (range.size() <= 0) continue;
            found += range.size();
            append_joined(selected.pieces, std::move(part));
        }
        ATOLL_CHECK_EQ(found, wanted.size(), "rows of {}", packed.name);
    }
    if (selected.pieces.empty()) {
        selected.pieces.push_back(packed.pieces.front());
        auto& range = selected.pieces.front().box.ranges.front();
        range.end = range.begin;
    }
    return selected;
}

PackedPieces select_columns(const PackedPieces& packed, const Range& columns) {
    auto selected = packed;
    for (auto& piece : selected.pieces) {
        ATOLL_CHECK_EQ(piece.box.ranges.size(), 2u, "{}", piece.tensor.name);
        const auto begin = piece.box.ranges[1].begin;
        piece.box.ranges[1] = {begin + columns.begin, begin + columns.end};
    }
    return selected;
}

void name_pieces(PackedPieces& packed) {
    for (auto& piece : packed.pieces) {
        const auto same_tensor = std::ranges::count(
            packed.pieces, piece.tensor.name, [](const TensorPiece& other) { return other.tensor.name; });
        piece.name = piece.tensor.name + (same_tensor > 1 ? to_string(piece.box) : "");
    }
}

}  // namespace atl
