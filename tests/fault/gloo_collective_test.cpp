// The Gloo collective between processes: same bits as the in-process one, and errors that name the lost rank.
#include "comm/island/gloo_collective.h"

#include <gtest/gtest.h>

#include <csignal>

#include "support/island_processes.h"

namespace atl {
namespace {

using test::kLimit;

class Members : public test::IslandProcesses {
  public:
    ChildProcess& start(std::int32_t rank, std::int32_t size, Milliseconds timeout,
                        const std::string& scenario) {
        return start_rank("island_member", rank, size, {std::to_string(timeout.count()), scenario});
    }
};

TEST(GlooCollective, every_member_gets_the_same_bits_in_every_run) {
    for (const std::int32_t size : {2, 3}) {
        std::string first_run;
        for (int run = 0; run < 2; ++run) {
            Members members;
            for (std::int32_t rank = 0; rank < size; ++rank) members.start(rank, size, kLimit, "once");
            members.expect_all_end_well();
            ASSERT_EQ(members.output(0).size(), 65u) << members.output(0);
            for (std::int32_t rank = 1; rank < size; ++rank)
                EXPECT_EQ(members.output(rank), members.output(0));
            if (run == 0) first_run = members.output(0);
            EXPECT_EQ(members.output(0), first_run);
        }
    }
}

TEST(GlooCollective, a_rank_killed_while_all_sum_is_named_by_the_other_long_before_the_timeout) {
    Members members;
    ChildProcess& survivor = members.start(0, 2, kLimit, "forever");
    ChildProcess& victim = members.start(1, 2, kLimit, "forever");
    members.await("summing");
    victim.send_signal(SIGKILL);
    const auto status = survivor.wait_for(kLimit / 2);
    ASSERT_TRUE(status && status->ok())
        << (status ? to_string(*status) : "still running") << members.output(0);
    const std::string said = members.output(0);
    EXPECT_NE(said.find("all_reduce in group dp: rank 0 lost rank 1"), std::string::npos) << said;
    EXPECT_LT(std::stod(said), seconds(kLimit) / 2) << said;
}

TEST(GlooCollective, every_survivor_names_the_rank_that_died_and_not_the_one_that_gave_up) {
    constexpr std::int32_t kSize = 4;
    Members members;
    std::vector<ChildProcess*> processes;
    for (std::int32_t rank = 0; rank < kSize; ++rank) {
        processes.push_back(&members.start(rank, kSize, kLimit, "forever"));
    }
    members.await("summing");
    processes[2]->send_signal(SIGKILL);
    for (const std::int32_t rank : {0, 1, 3}) {
        const auto status = processes[rank]->wait_for(kLimit / 2);
        ASSERT_TRUE(status && status->ok()) << (status ? to_string(*status) : "still running");
        const std::string said = members.output(rank);
        EXPECT_NE(said.find("lost rank 2"), std::string::npos) << said;
    }
}

TEST(GlooCollective, a_silent_rank_is_named_at_the_timeout) {
    Members members;
    members.start(1, 2, kLimit, "silent");
    ChildProcess& survivor = members.start(0, 2, Milliseconds(300), "forever");
    const auto status = survivor.wait_for(kLimit);
    ASSERT_TRUE(status && status->ok())
        << (status ? to_string(*status) : "still running") << members.output(0);
    const std::string said = members.output(0);
    EXPECT_NE(said.find("waited 300 ms for rank 1"), std::string::npos) << said;
}

TEST(GlooCollective, its_functions_come_from_libgloo) {
    EXPECT_NE(gloo_library_path().find("libgloo"), std::string::npos) << gloo_library_path();
}

}  // namespace
}  // namespace atl
