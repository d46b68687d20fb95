// Laws of programs over random ones: the text form loses nothing, and whatever two values share bytes in a placement,
// no timing of the ops makes them live at once. The timings come from the virtual executor with random durations, so
// the placer's own reasoning is not its judge.
#include <gtest/gtest.h>

#include <algorithm>

#include "program/checker.h"
#include "program/dependencies.h"
#include "program/placement.h"
#include "program/text.h"
#include "program/virtual_executor.h"
#include "support/random_program.h"
#include "support/value_lives.h"

namespace atl {
namespace {

TEST(TextProperty, parse_after_print_gives_the_same_program) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        SCOPED_TRACE(seed);
        const auto program = test::arbitrary_program(seed);
        const auto text = print(program);
        ASSERT_EQ(parse_program(text), program) << text;
        ASSERT_EQ(print(parse_program(text)), text);
    }
}

TEST(TextProperty, any_difference_changes_the_plan_hash) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        SCOPED_TRACE(seed);
        auto program = test::legal_program(seed, 10);
        const auto hash = plan_hash(program);
        program.ops[5].scratch_bytes += 1;
        ASSERT_NE(plan_hash(program), hash);
    }
}

void expect_no_two_alive_on_one_byte(const Program& program, const Placement& placement, std::uint64_t seed) {
    test::RandomChoice random(seed + 1'000'000);
    for (int trial = 0; trial < 5; ++trial) {
        std::vector<double> seconds(program.ops.size());
        for (auto& duration : seconds)
            duration = 1 + static_cast<double>(random.below(random.one_in(4) ? 1000 : 5));
        const auto run = execute_virtually({program}, {seconds});
        const auto lives = test::lives(program, placement, run.ops[0]);
        ASSERT_FALSE(test::two_alive_on_one_byte(lives)) << print(program);
    }
}

TEST(PlacementProperty, no_timing_makes_two_values_live_on_one_byte) {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        SCOPED_TRACE(seed);
        auto program = test::legal_program(seed, 60);
        ASSERT_TRUE(check_programs({program}).empty()) << check_programs({program}).front();
        const auto before = program;
        const auto placement = place(program);
        ASSERT_EQ(program, before) << "no after edge was allowed";
        const auto problems = check_placement(program, placement);
        ASSERT_TRUE(problems.empty()) << problems.front();
        expect_no_two_alive_on_one_byte(program, placement, seed);
    }
}

TEST(PlacementProperty, after_edges_save_memory_and_are_what_makes_it_safe) {
    std::int64_t plain_bytes = 0, saved_bytes = 0;
    int needed = 0;
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        SCOPED_TRACE(seed);
        auto program = test::legal_program(seed, 60);
        const auto before = program;
        plain_bytes += place(program).peak_bytes();
        const auto placement = place(program, {.after_edge_distance = 4});
        saved_bytes += placement.peak_bytes();
        ASSERT_TRUE(check_programs({program}).empty());
        const auto problems = check_placement(program, placement);
        ASSERT_TRUE(problems.empty()) << problems.front();
        expect_no_two_alive_on_one_byte(program, placement, seed);
        if (program != before) {
            ++needed;
            ASSERT_FALSE(check_placement(before, placement).empty()) << "the edges were needless";
        }
    }
    EXPECT_GT(needed, 50);
    EXPECT_LT(saved_bytes, plain_bytes * 95 / 100);
}

// The definition itself: both touch some byte, and one of them writes it.
bool conflict(const Program& program, const Op& a, const Op& b) {
    const auto overlap = [&](const std::vector<ValueId>& some, const std::vector<ValueId>& others) {
        for (const auto x : some)
            for (const auto y : others)
                if (byte_range(program, x).overlaps(byte_range(program, y))) return true;
        return false;
    };
    return overlap(a.writes, b.writes) || overlap(a.writes, b.reads) || overlap(a.reads, b.writes);
}

TEST(HappensBeforeProperty, equals_reachability_over_conflicts_and_issue_order) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        const auto program = test::legal_program(seed, 40);
        const HappensBefore happens_before(program);
        const auto n = program.ops.size();
        std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
        for (std::size_t b = 0; b < n; ++b)
            for (std::size_t a = 0; a < b; ++a) {
                if (program.ops[a].resource != program.ops[b].resource &&
                    !conflict(program, program.ops[a], program.ops[b]))
                    continue;
                reaches[a][b] = true;
                for (std::size_t c = 0; c < a; ++c)
                    if (reaches[c][a]) reaches[c][b] = true;
            }
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t b = 0; b < n; ++b)
                ASSERT_EQ(happens_before(program.ops[a].id, program.ops[b].id), reaches[a][b])
                    << a << " " << b;
    }
}

}  // namespace
}  // namespace atl
