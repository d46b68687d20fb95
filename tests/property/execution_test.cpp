// Laws of the execution of several ranks' programs on the virtual clock, over random programs and durations: no timing
// makes them wait for ever, no mode is faster than one with more freedom, and placed memory is safe.
#include <gtest/gtest.h>

#include "program/checker.h"
#include "program/dependencies.h"
#include "program/execution_graph.h"
#include "program/placement.h"
#include "program/text.h"
#include "program/virtual_executor.h"
#include "support/random_program.h"
#include "support/random_ranks.h"
#include "support/value_lives.h"

namespace atl {
namespace {

std::vector<Program> programs_of(std::uint64_t seed) {
    return test::random_rank_programs({.seed = seed, .ranks = 2 + static_cast<std::int32_t>(seed % 3)});
}

std::vector<std::vector<double>> random_durations(const std::vector<Program>& programs, std::uint64_t seed) {
    test::RandomChoice random(seed + 1'000'000);
    std::vector<std::vector<double>> seconds;
    for (const auto& program : programs) {
        auto& durations = seconds.emplace_back(program.ops.size());
        for (auto& duration : durations)
            duration = static_cast<double>(random.below(random.one_in(4) ? 1000 : 5));
    }
    return seconds;
}

TEST(ExecutionProperty, random_programs_pass_the_checker) {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        const auto problems = check_programs(programs_of(seed));
        ASSERT_TRUE(problems.empty()) << "seed " << seed << ": " << problems.front();
    }
}

TEST(ExecutionProperty, no_durations_deadlock_and_freedom_is_never_slower_over_1200_runs) {
    int faster = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        SCOPED_TRACE(seed);
        const auto programs = programs_of(seed);
        const auto seconds = random_durations(programs, seed);
        const double event = execute_virtually(programs, seconds, ExecutionMode::event).step_seconds;
        const double barrier = execute_virtually(programs, seconds, ExecutionMode::barrier).step_seconds;
        const double serial = execute_virtually(programs, seconds, ExecutionMode::serial).step_seconds;
        ASSERT_LE(event, barrier);
        ASSERT_LE(barrier, serial);
        faster += event < barrier && barrier < serial ? 1 : 0;
    }
    EXPECT_GT(faster, 200) << "the modes hardly differ";
}

TEST(ExecutionProperty, slowdowns_by_next_to_nothing_change_no_time_and_real_ones_only_delay) {
    std::vector<PairSlowdown> pairs;
    for (std::size_t family = 0; family < kOpFamilies; ++family)
        for (std::size_t other = 0; other < kOpFamilies; ++other)
            pairs.push_back({.first = {static_cast<OpFamily>(family), Resource::compute},
                             .second = {static_cast<OpFamily>(other), Resource::link_intra},
                             .first_slowdown = 1,
                             .second_slowdown = 1});
    auto nothing = pairs, much = pairs;
    nothing.front().first_slowdown = 1 + 1e-15;  // no longer the way for models that slow nothing down
    for (auto& pair : much) pair.first_slowdown = pair.second_slowdown = 1.5;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        SCOPED_TRACE(seed);
        const auto programs = programs_of(seed);
        const auto seconds = random_durations(programs, seed);
        const auto plain = execute_virtually(programs, seconds);
        const auto fluid = execute_virtually(programs, seconds, ExecutionMode::event, OverlapModel(nothing));
        for (std::size_t rank = 0; rank < programs.size(); ++rank)
            for (std::size_t op = 0; op < programs[rank].ops.size(); ++op) {
                ASSERT_NEAR(fluid.ops[rank][op].start_seconds, plain.ops[rank][op].start_seconds, 1e-6);
                ASSERT_NEAR(fluid.ops[rank][op].end_seconds, plain.ops[rank][op].end_seconds, 1e-6);
            }
        const double slowed =
            execute_virtually(programs, seconds, ExecutionMode::event, OverlapModel(much)).step_seconds;
        ASSERT_GE(slowed, plain.step_seconds * (1 - 1e-9));
        ASSERT_LE(slowed, plain.step_seconds * 1.5 * 1.5 * 1.5);
    }
}

TEST(ExecutionProperty, happens_before_is_what_the_execution_graph_of_a_rank_says) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        const auto program = programs_of(seed).front();
        const HappensBefore happens_before(program);
        const auto graph = make_execution_graph({program});
        std::vector<std::vector<bool>> reached_from(graph.nodes.size());
        for (const auto node : graph.topological_order()) {
            auto& from = reached_from[node];
            from.resize(graph.nodes.size());
            for (const auto earlier : graph.predecessors[node]) {
                from[earlier] = true;
                for (std::size_t i = 0; i < from.size(); ++i) from[i] = from[i] || reached_from[earlier][i];
            }
        }
        for (const auto& a : program.ops)
            for (const auto& b : program.ops) {
                const auto end = graph.ends_at[0][static_cast<std::size_t>(a.id.value())];
                const auto start = graph.starts_at[0][static_cast<std::size_t>(b.id.value())];
                ASSERT_EQ(happens_before(a.id, b.id), reached_from[start][end])
                    << describe(a) << ", " << describe(b);
            }
    }
}

// Whatever two values of a rank share bytes, the last op on the one has ended when the first on the other starts. A
// receive uses its memory from its post on, and that is what its edges must hold back.
TEST(ExecutionProperty, no_timing_makes_two_values_live_on_one_byte) {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        SCOPED_TRACE(seed);
        auto programs = programs_of(seed);
        std::vector<Placement> placements;
        for (auto& program : programs) {
            placements.push_back(place(program, {.after_edge_distance = seed % 2 == 0 ? 0 : 3}));
            const auto problems = check_placement(program, placements.back());
            ASSERT_TRUE(problems.empty()) << problems.front();
        }
        ASSERT_TRUE(check_programs(programs).empty()) << check_programs(programs).front();
        for (std::uint64_t trial = 0; trial < 3; ++trial) {
            const auto seconds = random_durations(programs, 1'000 * trial + seed);
            const auto run = execute_virtually(programs, seconds);
            for (std::size_t i = 0; i < programs.size(); ++i) {
                const auto lives = test::lives(programs[i], placements[i], run.ops[i]);
                ASSERT_FALSE(test::two_alive_on_one_byte(lives)) << print(programs[i]);
            }
        }
    }
}

}  // namespace
}  // namespace atl
