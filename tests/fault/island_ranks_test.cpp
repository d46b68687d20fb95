// Data-parallel ranks as processes over Gloo: the same bits as threads give, and a clear end when one is killed.
#include <gtest/gtest.h>

#include <csignal>

#include "support/island_processes.h"
#include "support/island_testing.h"
#include "support/local_island.h"
#include "support/threads.h"

namespace atl {
namespace {

std::string hash_of_threads(std::int32_t ranks, int steps) {
    IslandOptions options = test::small_island(test::small_llama(), 1);
    options.parallel.dp = ranks;
    const test::LocalIsland local(options);
    std::vector<std::string> hashes(static_cast<std::size_t>(ranks));
    test::run_ranks(ranks, [&](std::int32_t rank) {
        Island island(options, local.links(rank));
        island.initialise(4);
        for (int step = 0; step < steps; ++step) test::random_step(island, step);
        hashes[rank] = island.parameters_blake2b();
    });
    return hashes.front();
}

TEST(IslandRanks, two_processes_train_the_same_bits_as_two_threads_in_every_run) {
    const std::string expected = hash_of_threads(2, 3) + "\n";
    for (int run = 0; run < 2; ++run) {
        test::IslandProcesses ranks;
        for (const std::int32_t rank : {0, 1}) ranks.start_rank("island_trainer", rank, 2, {"3"});
        ranks.expect_all_end_well();
        EXPECT_EQ(ranks.output(0), expected);
        EXPECT_EQ(ranks.output(1), expected);
    }
}

TEST(IslandRanks, a_rank_killed_in_a_step_ends_the_step_on_the_other_which_names_it_and_the_op) {
    test::IslandProcesses ranks;
    ChildProcess& survivor = ranks.start_rank("island_trainer", 0, 2, {"0"});
    ChildProcess& victim = ranks.start_rank("island_trainer", 1, 2, {"0"});
    ranks.await("training");
    victim.send_signal(SIGKILL);
    const auto status = survivor.wait_for(test::kLimit / 2);
    ASSERT_TRUE(status && status->ok()) << (status ? to_string(*status) : "still running") << ranks.output(0);
    EXPECT_NE(ranks.output(0).find("all_reduce"), std::string::npos) << ranks.output(0);
    EXPECT_NE(ranks.output(0).find("lost rank 1"), std::string::npos) << ranks.output(0);
}

}  // namespace
}  // namespace atl
