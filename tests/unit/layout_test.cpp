// Boxes, cells and reshard plans on cases small enough to work out by hand.
#include <gtest/gtest.h>

#include "core/check.h"
#include "layout/cells.h"
#include "layout/reshard.h"

namespace atl {
namespace {

Box rows(std::int64_t begin, std::int64_t end) {
    return {{{begin, end}, {0, 4}}};
}

TEST(Layout, split_covers_a_dimension_with_nearly_equal_ranges) {
    const auto layout = split({7, 4}, 0, 3);
    EXPECT_EQ(layout.rank_boxes, (std::vector<std::vector<Box>>{{rows(0, 2)}, {rows(2, 4)}, {rows(4, 7)}}));
}

TEST(Layout, split_over_more_ranks_than_rows_leaves_some_without_a_box) {
    const auto layout = split({1, 4}, 0, 2);
    EXPECT_TRUE(layout.rank_boxes[0].empty());
    EXPECT_EQ(layout.rank_boxes[1], std::vector<Box>{rows(0, 1)});
}

TEST(Cells, replicas_are_one_cell_held_by_all) {
    const auto cells = cut_into_cells(replicated({6, 4}, 3));
    ASSERT_EQ(cells.size(), 1u);
    EXPECT_EQ(cells[0], (Cell{rows(0, 6), {Rank(0), Rank(1), Rank(2)}}));
}

TEST(Cells, overlapping_boxes_are_cut_where_their_holders_change) {
    // Key/value heads shared by two ranks each, with a window that all three see.
    const TensorLayout layout{{6, 4}, {{rows(0, 3)}, {rows(2, 5)}, {rows(2, 6)}}};
    const auto cells = cut_into_cells(layout);
    const std::vector<Cell> expected = {{rows(0, 2), {Rank(0)}},
                                        {rows(2, 3), {Rank(0), Rank(1), Rank(2)}},
                                        {rows(3, 5), {Rank(1), Rank(2)}},
                                        {rows(5, 6), {Rank(2)}}};
    EXPECT_EQ(cells, expected);
}

TEST(Reshard, splitting_a_replica_moves_nothing) {
    const Layout from{{"w", replicated({6, 4}, 2)}};
    const Layout to{{"w", split({6, 4}, 0, 2)}};
    for (const auto& transfer : plan_reshard(from, to)) EXPECT_EQ(transfer.from, transfer.to);
}

TEST(Reshard, missing_pieces_come_from_the_holder_that_has_sent_least) {
    const Layout from{{"w", {{6, 4}, {{rows(0, 6)}, {rows(0, 6)}, {}}}}};
    const Layout to{{"w", {{6, 4}, {{}, {}, {rows(0, 2), rows(3, 6)}}}}};
    const std::vector<Transfer> expected = {{"w", rows(0, 2), Rank(0), Rank(2)},
                                            {"w", rows(3, 6), Rank(1), Rank(2)}};
    EXPECT_EQ(plan_reshard(from, to), expected);
}

TEST(Reshard, elements_that_nobody_holds_fail_a_check_naming_tensor_and_box) {
    const Layout from{{"w", {{6, 4}, {{rows(0, 5)}}}}};
    const Layout to{{"w", replicated({6, 4}, 1)}};
    try {
        plan_reshard(from, to);
        FAIL();
    } catch (const CheckError& error) {
        EXPECT_NE(std::string(error.what()).find("w [0:6,0:4]"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace atl
