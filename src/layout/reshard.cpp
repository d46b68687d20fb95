#include "layout/reshard.h"

#include <algorithm>

#include "core/check.h"
#include "layout/cells.h"

namespace atl {
namespace {

// The boxes of one rank without what they share, in the order of their cells.
std::vector<Box> disjoint(const TensorLayout& layout, std::size_t rank) {
    TensorLayout one{layout.shape, {layout.rank_boxes[rank]}};
    std::vector<Box> boxes;
    for (auto& cell : cut_into_cells(one)) boxes.push_back(std::move(cell.box));
    return boxes;
}

}  // namespace

std::vector<Transfer> plan_reshard(const Layout& from, const Layout& to) {
    std::vector<Transfer> plan;
    std::map<Rank, std::int64_t> sent_elements;
    for (const auto& [tensor, target] : to) {
        const auto source = from.find(tensor);
        ATOLL_CHECK(source != from.end(), "[layout] {} is in the new layout alone", tensor);
        ATOLL_CHECK(source->second.shape == target.shape, "[layout] {} changes its shape", tensor);
        const auto cells = cut_into_cells(source->second);
        for (std::size_t rank = 0; rank < target.rank_boxes.size(); ++rank) {
            const Rank receiver(static_cast<std::int32_t>(rank));
            for (const auto& box : disjoint(target, rank)) {
                std::int64_t covered = 0;
                for (const auto& cell : cells) {
                    const auto piece = intersect(cell.box, box);
                    if (!piece) continue;
                    covered += piece->elements();
                    const bool own = std::ranges::binary_search(cell.holders, receiver);
                    const Rank sender =
                        own ? receiver : *std::ranges::min_element(cell.holders, {}, [&](Rank holder) {
                            return sent_elements[holder];
                        });
                    if (!own) sent_elements[sender] += piece->elements();
                    plan.push_back({tensor, *piece, sender, receiver});
                }
                ATOLL_CHECK_EQ(covered, box.elements(), "[layout] no rank holds all of {} {}", tensor,
                               to_string(box));
            }
        }
    }
    return plan;
}

}  // namespace atl
