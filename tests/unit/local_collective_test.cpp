// The in-process collective: sums in ring order, copies, and what happens when a member stays away.
#include "comm/island/local_collective.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "comm/island/rendezvous.h"
#include "comm/island/ring.h"
#include "core/error.h"
#include "core/random.h"
#include "support/temporary_directory.h"
#include "support/threads.h"

namespace atl {
namespace {

constexpr Milliseconds kTimeout{20'000};
constexpr Milliseconds kShortTimeout{50};

std::vector<float> values_of(std::int32_t rank, std::int64_t count) {
    const RandomStream random(7, static_cast<std::uint64_t>(rank));
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(random.normal(i));
    return values;
}

TEST(LocalCollective, all_reduce_sums_each_chunk_in_ring_order_on_every_member) {
    for (const std::int32_t size : {1, 2, 3, 5}) {
        for (const std::int64_t count : {0, 1, 4, 1003}) {
            auto members = make_local_collectives(size, "dp");
            std::vector<std::vector<float>> values;
            for (std::int32_t rank = 0; rank < size; ++rank) values.push_back(values_of(rank, count));
            const auto original = values;
            test::run_ranks(
                size, [&](std::int32_t rank) { members[rank]->all_reduce(view_of(values[rank]), kTimeout); });
            for (std::int32_t chunk = 0; chunk < size; ++chunk) {
                const RingChunk range = ring_chunk(count, size, chunk);
                for (std::int64_t i = range.begin; i < range.end; ++i) {
                    float sum = original[(chunk + 1) % size][i];
                    for (std::int32_t step = 1; step < size; ++step)
                        sum += original[(chunk + 1 + step) % size][i];
                    for (std::int32_t rank = 0; rank < size; ++rank) ASSERT_EQ(values[rank][i], sum);
                }
            }
        }
    }
}

TEST(LocalCollective, reduce_scatter_then_all_gather_gives_every_member_the_sums_of_all) {
    for (const std::int32_t size : {1, 2, 3, 5}) {
        for (const std::int64_t rows : {0, 1, 4, 103}) {
            constexpr std::int64_t kWidth = 7;
            auto members = make_local_collectives(size, "tp");
            test::run_ranks(size, [&](std::int32_t rank) {
                std::vector<float> whole = values_of(rank, rows * kWidth);
                const std::vector<float> original = whole;
                std::vector<float> sum = whole;
                const RingChunk range = ring_chunk(rows, size, rank);
                std::vector<float> piece(static_cast<std::size_t>(range.size() * kWidth));
                members[rank]->reduce_scatter_rows(view_of(whole), view_of(piece), rows, kTimeout);
                EXPECT_EQ(whole, original);
                std::vector<float> gathered(whole.size());
                members[rank]->all_gather_rows(view_of(piece), view_of(gathered), rows, kTimeout);
                members[rank]->all_reduce(view_of(sum), kTimeout);
                // Element ranges of all_reduce are not row ranges: the sums may differ in their order alone.
                for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(gathered[i], sum[i], 1e-5);
                EXPECT_EQ(std::vector<float>(gathered.begin() + range.begin * kWidth,
                                             gathered.begin() + range.end * kWidth),
                          piece);
            });
        }
    }
}

TEST(LocalCollective, all_reduce_max_keeps_the_largest_and_not_a_number_wins) {
    constexpr std::int32_t kSize = 3;
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (std::int32_t sick = 0; sick < kSize; ++sick) {
        auto members = make_local_collectives(kSize, "tp");
        test::run_ranks(kSize, [&](std::int32_t rank) {
            std::vector<float> values = {rank == sick ? kNan : 1.0f, static_cast<float>(rank), -1.0f};
            members[rank]->all_reduce_max(view_of(values), kTimeout);
            EXPECT_TRUE(std::isnan(values[0]));
            EXPECT_EQ(values[1], 2.0f);
            EXPECT_EQ(values[2], -1.0f);
        });
    }
}

TEST(LocalCollective, a_member_that_gives_up_tells_the_others_why) {
    auto members = make_local_collectives(2, "tp");
    std::string message;
    test::run_ranks(2, [&](std::int32_t rank) {
        if (rank == 1) return members[1]->give_up("its disk is full");
        try {
            members[0]->barrier(kTimeout);
        } catch (const CommError& error) {
            message = error.what();
        }
    });
    EXPECT_NE(message.find("rank 1 gave up: its disk is full"), std::string::npos) << message;
}

TEST(LocalPointToPoint, messages_wait_for_nothing_when_posted_and_arrive_in_order) {
    auto members = make_local_point_to_point(2, "world");
    std::vector<float> first = {1, 2};
    std::vector<float> second = {3};
    members[0]->post_send(view_of(first), Rank(1));
    members[0]->post_send(view_of(second), Rank(1));
    std::vector<float> got_first(2);
    std::vector<float> got_second(1);
    members[1]->post_receive(view_of(got_first), Rank(0));
    members[1]->wait_receive(Rank(0), kTimeout);
    members[0]->wait_send(Rank(1), kTimeout);
    members[1]->post_receive(view_of(got_second), Rank(0));
    members[1]->wait_receive(Rank(0), kTimeout);
    members[0]->wait_send(Rank(1), kTimeout);
    EXPECT_EQ(got_first, first);
    EXPECT_EQ(got_second, second);
}

TEST(LocalPointToPoint, a_message_that_does_not_come_names_peer_and_operation_at_the_timeout) {
    auto members = make_local_point_to_point(3, "world");
    std::vector<float> values(1);
    members[0]->post_receive(view_of(values), Rank(2));
    try {
        members[0]->wait_receive(Rank(2), kShortTimeout);
        FAIL() << "nobody sent, yet it returned";
    } catch (const CommError& error) {
        EXPECT_NE(
            std::string(error.what()).find("receive at rank 0 from rank 2 in group world: waited 50 ms"),
            std::string::npos)
            << error.what();
    }
    EXPECT_THROW(members[1]->post_send(view_of(values), Rank(0)), CommError) << "the group stays broken";
}

TEST(LocalCollective, broadcast_gather_and_all_gather_move_the_right_bytes) {
    constexpr std::int32_t kSize = 3;
    auto members = make_local_collectives(kSize, "dp");
    test::run_ranks(kSize, [&](std::int32_t rank) {
        std::vector<double> values(5, rank);
        members[rank]->broadcast(view_of(values), Rank(2), kTimeout);
        EXPECT_EQ(values, std::vector<double>(5, 2.0));
        const std::string mine(static_cast<std::size_t>(rank), 'x');
        const auto gathered = members[rank]->gather(mine, Rank(1), kTimeout);
        const std::vector<std::string> all = {"", "x", "xx"};
        EXPECT_EQ(gathered, rank == 1 ? all : std::vector<std::string>{});
        EXPECT_EQ(members[rank]->all_gather(mine, kTimeout), all);
        members[rank]->barrier(kTimeout);
    });
}

TEST(LocalCollective, a_member_that_stays_away_is_named_at_the_timeout) {
    auto members = make_local_collectives(3, "dp");
    std::vector<std::string> messages(3);
    test::run_ranks(3, [&](std::int32_t rank) {
        if (rank == 1) return;
        try {
            members[rank]->barrier(kShortTimeout);
        } catch (const CommError& error) {
            messages[rank] = error.what();
        }
    });
    for (const std::int32_t rank : {0, 2}) {
        EXPECT_NE(messages[rank].find("barrier in group dp"), std::string::npos) << messages[rank];
        EXPECT_NE(messages[rank].find("for rank 1"), std::string::npos) << messages[rank];
    }
    EXPECT_THROW(members[1]->barrier(kTimeout), CommError) << "the group stays broken";
}

TEST(LocalCollective, a_member_that_was_destroyed_ends_the_wait_of_the_others_at_once) {
    auto members = make_local_collectives(2, "dp");
    std::string message;
    test::run_ranks(2, [&](std::int32_t rank) {
        if (rank == 1) {
            members[1].reset();
            return;
        }
        try {
            members[0]->barrier(kTimeout);
        } catch (const CommError& error) {
            message = error.what();
        }
    });
    EXPECT_NE(message.find("rank 1 has left"), std::string::npos) << message;
}

using MakeRendezvous = std::function<std::unique_ptr<Rendezvous>(std::int32_t)>;

void expect_exchange(const MakeRendezvous& make) {
    constexpr std::int32_t kSize = 3;
    test::run_ranks(kSize, [&](std::int32_t rank) {
        auto rendezvous = make(rank);
        for (const std::string key : {"first", "second"}) {
            const auto all = rendezvous->exchange(key, key + std::to_string(rank), kTimeout);
            EXPECT_EQ(all, (std::vector<std::string>{key + "0", key + "1", key + "2"}));
        }
    });
}

TEST(Rendezvous, ranks_meet_in_a_directory) {
    const test::TemporaryDirectory directory;
    expect_exchange([&](std::int32_t rank) { return make_file_rendezvous(directory.path(), Rank(rank), 3); });
}

TEST(Rendezvous, ranks_meet_at_an_address) {
    const std::uint16_t port = free_tcp_port("127.0.0.1");
    expect_exchange([&](std::int32_t rank) { return make_tcp_rendezvous("127.0.0.1", port, Rank(rank), 3); });
}

TEST(Rendezvous, the_rank_that_does_not_come_is_named) {
    const test::TemporaryDirectory directory;
    const std::uint16_t port = free_tcp_port("127.0.0.1");
    std::vector<std::unique_ptr<Rendezvous>> lonely;
    lonely.push_back(make_file_rendezvous(directory.path(), Rank(0), 2));
    lonely.push_back(make_tcp_rendezvous("127.0.0.1", port, Rank(0), 2));
    for (auto& rendezvous : lonely) {
        try {
            rendezvous->exchange("world", "mine", kShortTimeout);
            FAIL() << "nobody came, yet it returned";
        } catch (const CommError& error) {
            EXPECT_NE(std::string(error.what()).find("rank 1 of 2 did not come"), std::string::npos)
                << error.what();
        }
    }
    auto late = make_tcp_rendezvous("127.0.0.1", port, Rank(1), 2);
    EXPECT_THROW(late->exchange("world", "mine", kShortTimeout), CommError) << "nobody listens";
}

TEST(Rendezvous, loopback_is_reached_from_loopback) {
    EXPECT_EQ(local_address_towards("127.0.0.1", 80), "127.0.0.1");
    EXPECT_EQ(address_of_interface("lo"), "127.0.0.1");
    EXPECT_THROW(address_of_interface("no_such_interface"), UserError);
}

}  // namespace
}  // namespace atl
