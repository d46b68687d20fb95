// Laws of the strand planner over random pairs of strands: segments are the best there are, no plan is slower than one
// op after another nor faster than its busiest engine, and orders are legal.
#include <gtest/gtest.h>

#include <algorithm>

#include "program/order_search.h"
#include "program/segment_search.h"
#include "support/random_strands.h"

namespace atl {
namespace {

// All sequences of blocks, one after another, without the dynamic program's table: only what can't win is left out.
class BruteForce {
  public:
    BruteForce(const StrandPair& pair, const OverlapModel& overlap, std::int32_t longest)
        : pair_(pair), clock_(pair, overlap), longest_(longest) {
        for (std::int32_t i = 0; i < std::ssize(pair.ops); ++i) {
            const auto& op = pair.ops[static_cast<std::size_t>(i)];
            (op.movable ? weights_ : chain_[op.strand]).push_back(i);
        }
        seconds_left_ = serial_seconds(pair);
        best_ = seconds_left_;
    }

    double run() {
        try_all(0, 0, {}, 0, 0);
        return best_;
    }

  private:
    // What could at best be left: half of the work, if all ran beside other work.
    void try_all(std::size_t i, std::size_t j, std::vector<std::int32_t> done, double seconds, double work) {
        if (i == chain_[0].size() && j == chain_[1].size() && done.size() == weights_.size()) {
            best_ = std::min(best_, seconds);
            return;
        }
        if (seconds + (seconds_left_ - work) / 3 >= best_) return;
        std::vector<std::int32_t> free;
        for (const auto w : weights_) {
            const auto& after = pair_.ops[static_cast<std::size_t>(w)].waits_for;
            const bool is_free = after.empty() || std::ranges::find(chain_[1], after.front()) <
                                                      chain_[1].begin() + static_cast<std::ptrdiff_t>(j);
            if (is_free && std::ranges::find(done, w) == done.end()) free.push_back(w);
        }
        for (std::size_t subset = 0; subset < std::size_t{1} << free.size(); ++subset)
            for (std::size_t a = 0; a <= static_cast<std::size_t>(longest_) && i + a <= chain_[0].size(); ++a)
                for (std::size_t c = 0; c <= static_cast<std::size_t>(longest_) && j + c <= chain_[1].size();
                     ++c) {
                    const std::span<const std::int32_t> first = std::span(chain_[0]).subspan(i, a);
                    const std::span<const std::int32_t> second = std::span(chain_[1]).subspan(j, c);
                    if ((a + c == 0 && subset == 0) || !is_legal(first, second)) continue;
                    std::vector<std::int32_t> run;
                    auto all_done = done;
                    for (std::size_t w = 0; w < free.size(); ++w)
                        if ((subset >> w & 1) != 0) run.push_back(free[w]);
                    all_done.insert(all_done.end(), run.begin(), run.end());
                    double block_work = 0;
                    for (const auto ops : {first, second, std::span<const std::int32_t>(run)})
                        for (const auto op : ops)
                            block_work += pair_.ops[static_cast<std::size_t>(op)].seconds;
                    const double block = make_block(clock_, pair_, first, second, run).seconds;
                    try_all(i + a, j + c, all_done, seconds + block, work + block_work);
                }
    }

    bool is_legal(std::span<const std::int32_t> first, std::span<const std::int32_t> second) const {
        std::vector<Resource> links;
        for (const auto ops : {first, second})
            for (const auto op : ops)
                if (pair_.ops[static_cast<std::size_t>(op)].communicates())
                    links.push_back(pair_.ops[static_cast<std::size_t>(op)].op_class.resource);
        std::ranges::sort(links);
        return std::ranges::adjacent_find(links) == links.end();
    }

    const StrandPair& pair_;
    StrandClock clock_;
    std::int32_t longest_;
    std::array<std::vector<std::int32_t>, 2> chain_;
    std::vector<std::int32_t> weights_;
    double seconds_left_ = 0;
    double best_ = 0;
};

bool is_legal(const StrandPair& pair, const std::vector<std::int32_t>& order) {
    std::vector<std::ptrdiff_t> place(pair.ops.size(), -1);
    for (std::ptrdiff_t i = 0; i < std::ssize(order); ++i) {
        if (place[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] >= 0) return false;
        place[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = i;
    }
    for (std::size_t op = 0; op < pair.ops.size(); ++op) {
        if (place[op] < 0) return false;
        for (const auto earlier : pair.ops[op].waits_for)
            if (place[static_cast<std::size_t>(earlier)] > place[op]) return false;
    }
    return true;
}

TEST(StrandPlannerProperty, segments_are_the_best_there_are) {
    int with_weights = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        const bool is_long = seed % 2 == 0;  // long strands with short segments, short strands with any
        const auto pair =
            test::random_strands({.seed = seed, .longest = is_long ? 8 : 5, .most_weights = is_long ? 0 : 2});
        const auto overlap = test::random_overlap(seed);
        const std::int32_t longest = is_long ? 2 : 5;
        const auto plan = search_segments(pair, overlap, {.longest_segment = longest});
        ASSERT_TRUE(plan);
        const double best = BruteForce(pair, overlap, longest).run();
        ASSERT_NEAR(plan->seconds, best, 1e-9 * best);
        with_weights += std::ranges::any_of(pair.ops, &PairOp::movable) ? 1 : 0;
    }
    EXPECT_GT(with_weights, 10);
}

TEST(StrandPlannerProperty, plans_lie_between_the_busiest_engine_and_one_op_after_another) {
    int faster = 0, faster_still = 0;
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        SCOPED_TRACE(seed);
        const auto pair = test::random_strands({.seed = seed, .longest = 30, .most_weights = 8});
        const auto overlap = test::random_overlap(seed);
        const auto segments = search_segments(pair, overlap, {.longest_segment = 4, .band = 0.3});
        ASSERT_TRUE(segments);
        ASSERT_TRUE(is_legal(pair, segments->order()));
        const double serial = serial_seconds(pair), busiest = busiest_seconds(pair);
        ASSERT_LE(segments->seconds, serial * (1 + 1e-9));
        ASSERT_GE(segments->seconds, busiest * (1 - 1e-9));
        double sum = 0;
        for (const auto& block : segments->blocks) sum += block.seconds;
        ASSERT_NEAR(sum, segments->seconds, 1e-9 * serial);
        const double without_barriers = StrandClock(pair, overlap).run(segments->order());
        const auto found = search_order(pair, overlap, segments->order(), {.most_trials = 300, .places = {}});
        ASSERT_TRUE(is_legal(pair, found.order));
        ASSERT_LE(found.seconds, without_barriers * (1 + 1e-9));
        ASSERT_GE(found.seconds, busiest * (1 - 1e-9));
        if (seed % 2 == 0) continue;
        const auto free = search_segments(pair, OverlapModel(), {.longest_segment = 4});
        ASSERT_LE(StrandClock(pair, OverlapModel()).run(free->order()), free->seconds * (1 + 1e-9))
            << "where overlap costs nothing, barriers never help";
        faster += segments->seconds < serial * 0.9 ? 1 : 0;
        faster_still += found.seconds < segments->seconds * 0.99 ? 1 : 0;
    }
    EXPECT_GT(faster, 50) << "hardly anything overlaps";
    EXPECT_GT(faster_still, 5) << "the search for orders finds hardly anything";
}

TEST(StrandPlannerProperty, more_freedom_never_makes_segments_slower) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        SCOPED_TRACE(seed);
        const auto pair = test::random_strands({.seed = seed, .longest = 20, .most_weights = 6});
        const auto overlap = test::random_overlap(seed);
        const auto seconds = [&](const SegmentSearchOptions& options) {
            return search_segments(pair, overlap, options)->seconds;
        };
        const double single = seconds({.longest_segment = 1}), longer = seconds({.longest_segment = 4});
        ASSERT_LE(longer, single * (1 + 1e-9));
        ASSERT_LE(longer, seconds({.longest_segment = 4, .band = 0.1}) * (1 + 1e-9));
        ASSERT_LE(longer, seconds({.longest_segment = 4, .barrier_seconds = 0.5}) * (1 + 1e-9));
    }
}

}  // namespace
}  // namespace atl
