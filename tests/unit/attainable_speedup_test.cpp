// What interleaving can gain at best: never more than hiding all, nothing without overlap, and less for few
// micro-batches and for what lies outside the layers.
#include "island/attainable_speedup.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

TEST(AttainableSpeedup, hiding_all_of_the_shorter_side_is_the_bound) {
    EXPECT_DOUBLE_EQ(perfect_overlap_speedup(3, 1), 4.0 / 3);
    EXPECT_DOUBLE_EQ(perfect_overlap_speedup(1, 3), 4.0 / 3);
    EXPECT_DOUBLE_EQ(perfect_overlap_speedup(2, 2), 2);
    EXPECT_DOUBLE_EQ(perfect_overlap_speedup(0, 0), 1);
}

TEST(AttainableSpeedup, of_a_pair_is_the_known_plans_and_lies_between_them) {
    EXPECT_DOUBLE_EQ(best_pair_speedup(0.30, 0.9), 1.31);
    EXPECT_DOUBLE_EQ(best_pair_speedup(0.55, 1.0), 1.55);
    EXPECT_DOUBLE_EQ(best_pair_speedup(0.35, 0.9), (1.31 + 1.40) / 2);
    EXPECT_DOUBLE_EQ(best_pair_speedup(0.20, 0.7), (1.12 + 1.17) / 2);
}

TEST(AttainableSpeedup, of_a_pair_grows_with_overlap_and_stays_within_the_bound) {
    for (double share = 0; share <= 1; share += 0.05) {
        double before = 1;
        for (double effectiveness = 0; effectiveness <= 1; effectiveness += 0.05) {
            const double speedup = best_pair_speedup(share, effectiveness);
            EXPECT_GE(speedup, before - 1e-12) << share << " " << effectiveness;
            EXPECT_LE(speedup, perfect_overlap_speedup(1 - share, share) + 1e-12);
            before = speedup;
        }
        EXPECT_DOUBLE_EQ(best_pair_speedup(share, 0), 1);
    }
}

TEST(AttainableSpeedup, of_a_step_needs_micro_batches_and_leaves_alone_what_is_outside_the_layers) {
    const SerialStep all_layers{
        .seconds = 8, .layer_seconds = 8, .layer_communication_seconds = 0.3 * 8, .micro_batches = 1};
    EXPECT_DOUBLE_EQ(attainable_speedup(all_layers, 0.9), 1) << "one micro-batch has no partner";
    SerialStep eight = all_layers;
    eight.micro_batches = 8;
    EXPECT_DOUBLE_EQ(attainable_speedup(eight, 0.9), 8 / (1 + 7 / 1.31));
    SerialStep with_head = eight;
    with_head.seconds = 10;
    EXPECT_DOUBLE_EQ(attainable_speedup(with_head, 0.9), 10 / (2 + 1 + 7 / 1.31));
}

}  // namespace
}  // namespace atl
