// The in-process collective: sums in ring order, copies, and what happens when a member stays away.
#include "comm/island/local_collective.h"

#include <gtest/gtest.h>

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
                    float sum = original[chunk][i];
                    for (std::int32_t step = 1; step < size; ++step)
                        sum += original[(chunk + step) % size][i];
                    for (std::int32_t rank = 0; rank < size; ++rank) ASSERT_EQ(values[rank][i], sum);
                }
            }
        }
    }
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
