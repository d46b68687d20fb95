// The real executor on random programs of several ranks, each rank a thread: the same bits in every mode and under any
// delays, in order, without an allocation, and never a deadlock.
#include <gtest/gtest.h>

#include "comm/island/local_collective.h"
#include "core/error.h"
#include "program/dependencies.h"
#include "program/text.h"
#include "support/program_rank.h"
#include "support/random_ranks.h"
#include "support/threads.h"

namespace atl {
namespace {

constexpr Milliseconds kTimeout{60'000};  // no healthy test comes near it
constexpr int kSteps = 2;

struct Timing {
    ExecutionMode mode = ExecutionMode::event;
    std::optional<RandomDelays> delays;
    std::int32_t after_edge_distance = 0;
};

// Every rank's digests, step by step. inspect(rank) sees each rank at the end.
template <class Inspect>
std::vector<std::string> run_all(const std::vector<Program>& programs, const Timing& timing,
                                 Inspect inspect) {
    const auto ranks = static_cast<std::int32_t>(programs.size());
    auto world = make_local_collectives(ranks, "world");
    auto tp = make_local_collectives(2, "tp");
    auto office = make_local_point_to_point(ranks, "world");
    std::vector<std::string> digests(programs.size());
    test::run_ranks(ranks, [&](std::int32_t rank) {
        ExecutorOptions options{.collective_timeout = kTimeout,
                                .groups = {{"world", world[rank].get()}},
                                .point_to_point = office[rank].get(),
                                .mode = timing.mode,
                                .delays = timing.delays};
        if (rank < 2) options.groups["tp"] = tp[rank].get();
        test::ProgramRank program(programs[rank], timing.after_edge_distance, options);
        for (int step = 0; step < kSteps; ++step) digests[rank] += program.run(step) + "\n";
        EXPECT_EQ(program.executor().allocations().count, 0);
        inspect(program);
    });
    return digests;
}

std::vector<std::string> run_all(const std::vector<Program>& programs, const Timing& timing) {
    return run_all(programs, timing, [](const test::ProgramRank&) {});
}

TEST(ExecutorProperty, all_modes_give_the_same_bits_under_random_delays_in_60_programs) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        const auto programs = test::random_rank_programs(
            {.seed = seed, .ranks = 2 + static_cast<std::int32_t>(seed % 3), .events = 40});
        const auto expected = run_all(programs, {.mode = ExecutionMode::serial});
        const RandomDelays delays{seed, std::chrono::microseconds(seed % 2 == 0 ? 0 : 300)};
        for (const auto mode : {ExecutionMode::serial, ExecutionMode::barrier, ExecutionMode::event}) {
            ASSERT_EQ(run_all(programs, {mode, delays, seed % 4 < 2 ? 0 : 3}), expected) << name(mode);
        }
    }
}

// Recorded times keep what the program says: nothing starts before what it waits for has ended.
TEST(ExecutorProperty, recorded_times_keep_data_edges_and_the_order_of_ends) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        SCOPED_TRACE(seed);
        const auto programs = test::random_rank_programs({.seed = seed, .ranks = 3, .events = 40});
        const Timing timing{.delays = RandomDelays{seed, std::chrono::microseconds(100)}};
        run_all(programs, timing, [](const test::ProgramRank& rank) {
            const Program& program = rank.program();
            const auto& times = rank.executor().op_times();
            const auto edges = data_edges(program);
            std::map<Resource, double> last_end;
            for (const Op& op : program.ops) {
                const OpTime& time = times[static_cast<std::size_t>(op.id.value())];
                EXPECT_GT(time.start_seconds, 0);
                EXPECT_LE(time.start_seconds, time.end_seconds);
                for (const OpId earlier : edges[static_cast<std::size_t>(op.id.value())])
                    EXPECT_GE(time.start_seconds,
                              times[static_cast<std::size_t>(earlier.value())].end_seconds)
                        << describe(op);
                EXPECT_GE(time.end_seconds, last_end[op.resource]) << describe(op);
                last_end[op.resource] = time.end_seconds;
            }
        });
    }
}

// One rank never comes: all others end by their deadlines with an error that names an op of theirs. Which of several
// waits meets its deadline first, that for the absent rank or that for one who waits for it, is a matter of speed.
TEST(ExecutorProperty, a_rank_that_stays_away_ends_every_other_rank_by_its_deadline_with_a_named_op) {
    constexpr std::int32_t kRanks = 3;
    constexpr Milliseconds kShort{200};
    for (const auto mode : {ExecutionMode::event, ExecutionMode::barrier, ExecutionMode::serial}) {
        const auto programs = test::random_rank_programs({.seed = 5, .ranks = kRanks});
        auto world = make_local_collectives(kRanks, "world");
        auto tp = make_local_collectives(2, "tp");
        auto office = make_local_point_to_point(kRanks, "world");
        std::vector<std::string> errors(kRanks);
        test::run_ranks(kRanks, [&](std::int32_t rank) {
            if (rank == 2) return;
            test::ProgramRank program(programs[rank], 0,
                                      {.collective_timeout = kShort,
                                       .groups = {{"world", world[rank].get()}, {"tp", tp[rank].get()}},
                                       .point_to_point = office[rank].get(),
                                       .mode = mode});
            try {
                program.run(0);
            } catch (const CommError& error) {
                errors[rank] = error.what();
            }
            EXPECT_THROW(program.run(1), CommError) << "the executor stays broken";
        });
        for (const std::int32_t rank : {0, 1}) {
            EXPECT_NE(errors[rank].find(fmt::format("[engine] rank {} op ", rank)), std::string::npos)
                << errors[rank];
            EXPECT_NE(errors[rank].find("waited 200 ms"), std::string::npos) << errors[rank];
        }
    }
}

}  // namespace
}  // namespace atl
