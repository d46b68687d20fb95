// The Gloo collective between processes: same bits as the in-process one, and errors that name the lost rank.
#include "comm/island/gloo_collective.h"

#include <gtest/gtest.h>

#include <csignal>

#include "comm/island/gloo_mesh.h"
#include "comm/island/local_collective.h"
#include "support/collective_digest.h"
#include "support/island_processes.h"
#include "support/temporary_directory.h"
#include "support/threads.h"

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

TEST(GlooCollective, every_member_gets_the_bits_of_the_in_process_group_in_every_run) {
    for (const std::int32_t size : {1, 2, 3, 4}) {
        auto local = make_local_collectives(size, "dp");
        std::vector<std::string> expected(static_cast<std::size_t>(size));
        test::run_ranks(size, [&](std::int32_t rank) {
            expected[rank] = test::digest_of_collectives(*local[rank], kLimit);
        });
        for (int run = 0; run < (size == 3 ? 2 : 1); ++run) {
            Members members;
            for (std::int32_t rank = 0; rank < size; ++rank) members.start(rank, size, kLimit, "once");
            members.expect_all_end_well();
            for (std::int32_t rank = 0; rank < size; ++rank)
                EXPECT_EQ(members.output(rank), expected[rank] + "\n");
        }
    }
}

TEST(GlooPointToPoint, messages_between_all_pairs_arrive_in_order_as_they_do_in_process) {
    for (const std::int32_t size : {2, 3}) {
        auto local = make_local_point_to_point(size, "world");
        std::vector<std::string> expected(static_cast<std::size_t>(size));
        test::run_ranks(size, [&](std::int32_t rank) {
            expected[rank] = test::digest_of_messages(*local[rank], kLimit);
        });
        Members members;
        for (std::int32_t rank = 0; rank < size; ++rank) members.start(rank, size, kLimit, "messages");
        members.expect_all_end_well();
        for (std::int32_t rank = 0; rank < size; ++rank)
            EXPECT_EQ(members.output(rank), expected[rank] + "\n");
    }
}

TEST(GlooPointToPoint, a_rank_killed_while_all_exchange_is_named_by_every_other_with_the_operation) {
    constexpr std::int32_t kSize = 4;
    Members members;
    std::vector<ChildProcess*> processes;
    for (std::int32_t rank = 0; rank < kSize; ++rank) {
        processes.push_back(&members.start(rank, kSize, kLimit, "exchanging"));
    }
    members.await("begun");
    processes[2]->send_signal(SIGKILL);
    for (const std::int32_t rank : {0, 1, 3}) {
        const auto status = processes[rank]->wait_for(kLimit / 2);
        ASSERT_TRUE(status && status->ok()) << (status ? to_string(*status) : "still running");
        const std::string said = members.output(rank);
        EXPECT_NE(said.find("lost rank 2"), std::string::npos) << said;
        EXPECT_TRUE(said.find("receive in group dp") != std::string::npos ||
                    said.find("send in group dp") != std::string::npos)
            << said;
    }
}

TEST(GlooPointToPoint, a_message_that_does_not_come_names_the_rank_at_the_timeout) {
    Members members;
    members.start(1, 2, kLimit, "silent_messages");
    ChildProcess& survivor = members.start(0, 2, Milliseconds(300), "exchanging");
    const auto status = survivor.wait_for(kLimit);
    ASSERT_TRUE(status && status->ok())
        << (status ? to_string(*status) : "still running") << members.output(0);
    const std::string said = members.output(0);
    EXPECT_NE(said.find("receive in group dp: rank 0 waited 300 ms for rank 1"), std::string::npos) << said;
}

TEST(GlooCollective, a_rank_killed_while_all_sum_is_named_by_the_other_long_before_the_timeout) {
    Members members;
    ChildProcess& survivor = members.start(0, 2, kLimit, "forever");
    ChildProcess& victim = members.start(1, 2, kLimit, "forever");
    members.await("begun");
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
    members.await("begun");
    processes[2]->send_signal(SIGKILL);
    for (const std::int32_t rank : {0, 1, 3}) {
        const auto status = processes[rank]->wait_for(kLimit / 2);
        ASSERT_TRUE(status && status->ok()) << (status ? to_string(*status) : "still running");
        const std::string said = members.output(rank);
        EXPECT_NE(said.find("lost rank 2"), std::string::npos) << said;
    }
}

TEST(GlooMesh, a_buffer_that_ends_before_its_transfer_began_takes_it_along) {
    const test::TemporaryDirectory directory;
    test::run_ranks(2, [&](std::int32_t rank) {
        auto rendezvous = make_file_rendezvous(directory.path(), Rank(rank), 2);
        GlooMesh mesh({.group = "pair", .rank = Rank(rank), .size = 2}, *rendezvous);
        const MeshCall call = mesh.begin("exchange", kLimit, 7);
        int value = 0;
        const RingChunk bytes{0, sizeof value};
        if (rank == 0) {
            for (int given_up = 1; given_up <= 100; ++given_up) {
                UnboundBuffer buffer = mesh.buffer_over(&given_up, sizeof given_up);
                mesh.send(call, buffer, 1, bytes);
            }
            value = 1234;
        }
        UnboundBuffer buffer = mesh.buffer_over(&value, sizeof value);
        if (rank == 0) {
            mesh.send(call, buffer, 1, bytes);
            mesh.wait_sent(call, buffer, 1);
        } else {
            mesh.receive(call, buffer, 0, bytes);
            mesh.wait_received(call, buffer, 0);
        }
        EXPECT_EQ(value, 1234);
        const MeshCall last = mesh.begin_with_all("end", kLimit);  // nobody leaves while the other still waits
        std::byte nothing{};
        UnboundBuffer word = mesh.buffer_over(&nothing, 1);
        mesh.send(last, word, 1 - rank, {0, 1});
        UnboundBuffer answer = mesh.buffer_over(&value, sizeof value);
        mesh.receive(last, answer, 1 - rank, {0, 1});
        mesh.wait_sent(last, word, 1 - rank);
        mesh.wait_received(last, answer, 1 - rank);
    });
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
