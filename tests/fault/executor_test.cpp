// The executor with ranks as processes over Gloo: the same bits as with threads of one process, in every mode, and a
// clear end on every rank when one is killed.
#include "engine/executor.h"

#include <gtest/gtest.h>

#include <csignal>

#include "comm/island/local_collective.h"
#include "support/island_processes.h"
#include "support/program_rank.h"
#include "support/random_ranks.h"
#include "support/threads.h"

namespace atl {
namespace {

using test::kLimit;

constexpr std::int32_t kRanks = 3;
constexpr int kSteps = 3;

std::vector<std::string> outputs_of_threads(std::uint64_t seed) {
    const auto programs = test::random_rank_programs({.seed = seed, .ranks = kRanks});
    auto world = make_local_collectives(kRanks, "world");
    auto tp = make_local_collectives(2, "tp");
    auto office = make_local_point_to_point(kRanks, "messages");
    std::vector<std::string> outputs(kRanks);
    test::run_ranks(kRanks, [&](std::int32_t rank) {
        ExecutorOptions options{.groups = {{"world", world[rank].get()}},
                                .point_to_point = office[rank].get()};
        if (rank < 2) options.groups["tp"] = tp[rank].get();
        test::ProgramRank program(programs[rank], 3, options);
        for (int step = 0; step < kSteps; ++step) outputs[rank] += program.run(step) + "\n";
    });
    return outputs;
}

TEST(ExecutorProcesses, give_the_bits_of_threads_in_every_mode) {
    constexpr std::uint64_t kSeed = 1;
    test::IslandProcesses ranks;
    for (std::int32_t rank = 0; rank < kRanks; ++rank) {
        ranks.start_rank("program_member", rank, kRanks,
                         {std::to_string(kSeed), std::to_string(kSteps), "event", "barrier", "serial"});
    }
    const auto expected = outputs_of_threads(kSeed);
    ranks.expect_all_end_well();
    for (std::int32_t rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(ranks.output(rank), expected[rank] + expected[rank] + expected[rank]);
}

// Whatever a rank waits in when another is killed, a collective of either group or a message, and although it may wait
// for a third rank: it ends long before its deadline, and says who is gone and which op of its own that ended.
TEST(ExecutorProcesses, a_killed_rank_ends_every_other_which_names_it_and_its_own_op) {
    for (const auto mode : {ExecutionMode::event, ExecutionMode::serial}) {
        test::IslandProcesses ranks;
        std::vector<ChildProcess*> processes;
        for (std::int32_t rank = 0; rank < kRanks; ++rank) {
            processes.push_back(
                &ranks.start_rank("program_member", rank, kRanks, {"3", "0", std::string(name(mode))}));
        }
        ranks.await("begun");
        processes[2]->send_signal(SIGKILL);
        for (const std::int32_t rank : {0, 1}) {
            const auto status = processes[rank]->wait_for(kLimit / 2);
            ASSERT_TRUE(status && status->ok())
                << (status ? to_string(*status) : "still running") << ranks.output(rank);
            const std::string said = ranks.output(rank);
            EXPECT_NE(said.find(fmt::format("[engine] rank {} op ", rank)), std::string::npos) << said;
            EXPECT_NE(said.find("lost rank 2"), std::string::npos) << said;
        }
    }
}

}  // namespace
}  // namespace atl
