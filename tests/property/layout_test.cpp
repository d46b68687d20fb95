// Laws of cells and reshard plans over random layouts of random boxes: every element lies in exactly one cell whose
// holders are exactly those that hold it, and arrives exactly once wherever the new layout wants it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/check.h"
#include "core/random.h"
#include "layout/cells.h"
#include "layout/reshard.h"

namespace atl {
namespace {

class RandomLayouts {
  public:
    explicit RandomLayouts(std::uint64_t seed) : random_(seed, "layouts") {}

    std::int64_t below(std::int64_t bound) {
        return static_cast<std::int64_t>(random_.below(next_++, static_cast<std::uint64_t>(bound)));
    }
    Shape shape() {
        Shape shape(static_cast<std::size_t>(1 + below(3)));
        for (auto& extent : shape) extent = 1 + below(9);
        return shape;
    }
    Box box(const Shape& shape) {
        Box box;
        for (const auto extent : shape) {
            const auto begin = below(extent);
            box.ranges.push_back({begin, begin + 1 + below(extent - begin)});
        }
        return box;
    }
    // Some random boxes per rank; with `covering`, one random rank also holds everything.
    TensorLayout layout(const Shape& shape, bool covering) {
        TensorLayout layout{shape, std::vector<std::vector<Box>>(static_cast<std::size_t>(1 + below(4)))};
        for (auto& boxes : layout.rank_boxes)
            for (auto count = below(4); count > 0; --count) boxes.push_back(box(shape));
        if (covering)
            layout.rank_boxes[static_cast<std::size_t>(below(std::ssize(layout.rank_boxes)))].push_back(
                Box::whole(shape));
        return layout;
    }

  private:
    RandomStream random_;
    std::uint64_t next_ = 0;
};

// Calls visit with every single element of the box, as a box of one element.
template <class Visit>
void for_each_element(const Box& box, Visit visit) {
    for (std::int64_t i = 0; i < box.elements(); ++i) {
        Box element = box;
        std::int64_t rest = i;
        for (auto& range : element.ranges) {
            const auto size = range.size();
            range.begin += rest % size;
            range.end = range.begin + 1;
            rest /= size;
        }
        visit(element);
    }
}

std::vector<Rank> holders_of_element(const TensorLayout& layout, const Box& element) {
    std::vector<Rank> holders;
    for (std::size_t rank = 0; rank < layout.rank_boxes.size(); ++rank)
        for (const auto& box : layout.rank_boxes[rank])
            if (box.contains(element)) {
                holders.push_back(Rank(static_cast<std::int32_t>(rank)));
                break;
            }
    return holders;
}

TEST(CellsProperty, every_element_lies_in_one_cell_held_by_exactly_its_holders) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        RandomLayouts random(seed);
        const auto shape = random.shape();
        const auto layout = random.layout(shape, false);
        const auto cells = cut_into_cells(layout);
        for_each_element(Box::whole(shape), [&](const Box& element) {
            std::vector<Cell> around;
            for (const auto& cell : cells)
                if (cell.box.contains(element)) around.push_back(cell);
            const auto holders = holders_of_element(layout, element);
            ASSERT_EQ(around.size(), holders.empty() ? 0u : 1u) << to_string(element);
            if (!around.empty()) {
                ASSERT_EQ(around.front().holders, holders) << to_string(element);
            }
        });
    }
}

TEST(ReshardProperty, every_element_arrives_exactly_once_from_a_rank_that_holds_it) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        RandomLayouts random(seed);
        const auto shape = random.shape();
        const Layout from{{"w", random.layout(shape, true)}};
        const Layout to{{"w", random.layout(shape, false)}};
        std::map<std::pair<Rank, Box>, int> arrivals;
        for (const auto& transfer : plan_reshard(from, to)) {
            for_each_element(transfer.box, [&](const Box& element) {
                ++arrivals[{transfer.to, element}];
                const auto holders = holders_of_element(from.at("w"), element);
                ASSERT_TRUE(std::ranges::binary_search(holders, transfer.from));
                // Whoever has its own copy needs nobody else's.
                if (std::ranges::binary_search(holders, transfer.to)) {
                    ASSERT_EQ(transfer.from, transfer.to);
                }
            });
        }
        std::size_t wanted = 0;
        for (std::size_t rank = 0; rank < to.at("w").rank_boxes.size(); ++rank) {
            const Rank receiver(static_cast<std::int32_t>(rank));
            std::set<Box> elements;
            for (const auto& box : to.at("w").rank_boxes[rank])
                for_each_element(box, [&](const Box& element) { elements.insert(element); });
            wanted += elements.size();
            for (const auto& element : elements) {
                ASSERT_EQ((arrivals[{receiver, element}]), 1) << receiver.value() << to_string(element);
            }
        }
        ASSERT_EQ(arrivals.size(), wanted);
    }
}

}  // namespace
}  // namespace atl
