#include "layout/cells.h"

#include <algorithm>
#include <set>

#include "core/check.h"

namespace atl {
namespace {

// Per dimension, the sorted places where some box begins or ends.
std::vector<std::vector<std::int64_t>> box_ends(const TensorLayout& layout) {
    std::vector<std::set<std::int64_t>> ends(layout.shape.size());
    for (const auto& boxes : layout.rank_boxes)
        for (const auto& box : boxes) {
            ATOLL_CHECK(Box::whole(layout.shape).contains(box), "{}", to_string(box));
            for (std::size_t i = 0; i < ends.size(); ++i)
                ends[i].insert({box.ranges[i].begin, box.ranges[i].end});
        }
    std::vector<std::vector<std::int64_t>> sorted;
    for (const auto& set : ends) sorted.emplace_back(set.begin(), set.end());
    return sorted;
}

// Ranks with a box around `box`, which no box's end cuts.
std::vector<Rank> holders_of(const TensorLayout& layout, const Box& box) {
    std::vector<Rank> holders;
    for (std::size_t rank = 0; rank < layout.rank_boxes.size(); ++rank)
        if (std::ranges::any_of(layout.rank_boxes[rank],
                                [&](const Box& outer) { return outer.contains(box); }))
            holders.push_back(Rank(static_cast<std::int32_t>(rank)));
    return holders;
}

// Visits every box of the grid that the ends draw, row-major.
template <class Visit>
void for_each_grid_box(const std::vector<std::vector<std::int64_t>>& ends, Visit visit) {
    for (const auto& places : ends)
        if (places.size() < 2) return;
    std::vector<std::size_t> index(ends.size(), 0);
    while (true) {
        Box box;
        for (std::size_t i = 0; i < ends.size(); ++i)
            box.ranges.push_back({ends[i][index[i]], ends[i][index[i] + 1]});
        visit(box);
        std::size_t dimension = ends.size();
        while (dimension > 0 && ++index[dimension - 1] + 1 == ends[dimension - 1].size())
            index[--dimension] = 0;
        if (dimension == 0) return;
    }
}

// Joins cells that differ in one dimension only, touch there and have the same holders.
void join_along(std::vector<Cell>& cells, std::size_t dimension) {
    const auto across = [&](const Cell& cell) {
        Box box = cell.box;
        box.ranges.erase(box.ranges.begin() + static_cast<std::ptrdiff_t>(dimension));
        return box;
    };
    std::ranges::sort(cells, [&](const Cell& a, const Cell& b) {
        return std::pair(across(a), a.box.ranges[dimension].begin) <
               std::pair(across(b), b.box.ranges[dimension].begin);
    });
    std::vector<Cell> joined;
    for (auto& cell : cells) {
        if (!joined.empty() && joined.back().holders == cell.holders &&
            across(joined.back()) == across(cell) &&
            joined.back().box.ranges[dimension].end == cell.box.ranges[dimension].begin)
            joined.back().box.ranges[dimension].end = cell.box.ranges[dimension].end;
        else
            joined.push_back(std::move(cell));
    }
    cells = std::move(joined);
}

}  // namespace

std::vector<Cell> cut_into_cells(const TensorLayout& layout) {
    std::vector<Cell> cells;
    for_each_grid_box(box_ends(layout), [&](const Box& box) {
        auto holders = holders_of(layout, box);
        if (!holders.empty()) cells.push_back({box, std::move(holders)});
    });
    for (std::size_t i = layout.shape.size(); i > 0; --i) join_along(cells, i - 1);
    std::ranges::sort(cells, {}, &Cell::box);
    return cells;
}

}  // namespace atl
