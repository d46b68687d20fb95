// The arithmetic of emulated links: a packet is never early, a link never faster than its rate, losses are as
// many as asked for, and a full queue drops.
#include <gtest/gtest.h>

#include "netlab/hosts.h"
#include "netlab/link_emulator.h"
#include "netlab/shaped_link.h"

namespace atl::netlab {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TimePoint at(std::chrono::nanoseconds since_start) {
    return TimePoint(since_start);
}

// Both steps of a packet that nothing overtakes.
std::optional<TimePoint> arrival(LinkEmulator& links, int from, int to, std::int64_t bytes, TimePoint now) {
    const auto there = links.send(from, to, bytes, now);
    return there ? links.receive(from, to, bytes, *there) : std::nullopt;
}

TEST(LinkEmulator, a_packet_arrives_after_its_transmission_and_the_delay_of_its_pair) {
    LinkEmulator links({.hosts = 3, .delay_ms = 20, .rate_mbit_per_s = 8, .pair_delay_ms = {{{0, 2}, 50}}});
    // 1000 bytes at 8 Mbit/s take 1 ms to leave.
    EXPECT_EQ(arrival(links, 0, 1, 1000, at(milliseconds(100))), at(milliseconds(121)));
    EXPECT_EQ(arrival(links, 2, 0, 1000, at(milliseconds(100))), at(milliseconds(151)));
}

TEST(LinkEmulator, packets_of_one_sender_and_to_one_receiver_follow_each_other_at_the_rate) {
    LinkEmulator links({.hosts = 3, .delay_ms = 10, .rate_mbit_per_s = 8});
    EXPECT_EQ(arrival(links, 0, 2, 1000, at({})), at(milliseconds(11)));
    EXPECT_EQ(arrival(links, 0, 1, 1000, at({})), at(milliseconds(12)))
        << "host 0 sends one packet at a time";
    EXPECT_EQ(arrival(links, 1, 2, 1000, at({})), at(milliseconds(12)))
        << "host 2 receives one packet at a time";
}

TEST(LinkEmulator, a_packet_that_waits_at_its_sender_holds_up_nobody_at_its_receiver) {
    LinkEmulator links({.hosts = 3, .delay_ms = 10, .rate_mbit_per_s = 8});
    for (int packet = 0; packet < 20; ++packet) links.send(0, 1, 1000, at({}));
    const auto late = links.send(0, 2, 1000, at({}));
    const auto early = links.send(1, 2, 1000, at({}));
    ASSERT_TRUE(late && early);
    EXPECT_EQ(links.receive(1, 2, 1000, *early), at(milliseconds(11)));
    EXPECT_EQ(links.receive(0, 2, 1000, *late), at(milliseconds(31)));
}

TEST(LinkEmulator, a_host_with_an_uplink_of_its_own_sends_at_that_and_receives_at_the_rate) {
    LinkEmulator links({.hosts = 2, .delay_ms = 0, .rate_mbit_per_s = 8, .uplink_mbit_per_s = {{1, 4}}});
    EXPECT_EQ(links.send(1, 0, 1000, at({})), at(milliseconds(2)));
    EXPECT_EQ(links.send(0, 1, 1000, at({})), at(milliseconds(1)));
    links.receive(0, 1, 1000, at(milliseconds(1)));
    EXPECT_EQ(links.receive(0, 1, 1000, at(milliseconds(1))), at(milliseconds(2)));
}

TEST(LinkEmulator, a_queue_that_is_full_drops_and_takes_packets_again_when_it_has_drained) {
    LinkEmulator links({.hosts = 2, .delay_ms = 0, .rate_mbit_per_s = 8, .queue_kib = 10});
    int arrived = 0;
    for (int packet = 0; packet < 100; ++packet) arrived += links.send(0, 1, 1024, at({})).has_value();
    EXPECT_EQ(arrived, 10);
    EXPECT_EQ(links.traffic()[0].dropped_packets, 90);
    EXPECT_EQ(links.traffic()[0].sent_bytes, 100 * 1024);
    EXPECT_TRUE(links.send(0, 1, 1024, at(milliseconds(20))).has_value());
}

TEST(LinkEmulator, loses_the_share_asked_for_and_the_same_packets_for_the_same_seed) {
    const auto losses = [](std::uint64_t seed) {
        LinkEmulator links({.hosts = 2, .rate_mbit_per_s = 1000, .loss_percent = 5, .seed = seed});
        std::vector<bool> lost;
        for (int packet = 0; packet < 20'000; ++packet) {
            lost.push_back(!links.send(0, 1, 100, at(microseconds(packet * 10))));
        }
        EXPECT_EQ(links.traffic()[0].dropped_packets, 0);
        EXPECT_NEAR(static_cast<double>(links.traffic()[0].lost_packets), 1000, 150) << "seed " << seed;
        return lost;
    };
    EXPECT_EQ(losses(1), losses(1));
    EXPECT_NE(losses(1), losses(2));
}

TEST(Destination, is_the_host_of_the_address_and_nothing_for_packets_that_have_no_way) {
    const auto packet_to = [](std::array<int, 4> address, int version = 4) {
        std::vector<std::byte> packet(20);
        packet[0] = static_cast<std::byte>(version << 4 | 5);
        for (int octet = 0; octet < 4; ++octet) packet[16 + octet] = static_cast<std::byte>(address[octet]);
        return packet;
    };
    EXPECT_EQ(destination_host(packet_to({10, 77, 1, 1}), 2), 1);
    EXPECT_EQ(destination_host(packet_to({10, 77, 2, 1}), 2), -1) << "no such host";
    EXPECT_EQ(destination_host(packet_to({10, 77, 1, 9}), 2), -1) << "no such address on the host";
    EXPECT_EQ(destination_host(packet_to({224, 0, 0, 1}), 2), -1);
    EXPECT_EQ(destination_host(packet_to({10, 77, 1, 1}, 6), 2), -1);
    EXPECT_EQ(destination_host(std::vector<std::byte>(19), 2), -1) << "shorter than a header";
}

TEST(TokenBucket, holds_little_of_what_the_link_carries_and_more_than_any_packet) {
    for (const double mbit : {1.0, 50.0, 300.0, 1e3, 3e3, 10e3, 100e3}) {
        const TokenBucket bucket = token_bucket(mbit);
        EXPECT_GT(bucket.burst_bytes, bucket.largest_packet_bytes) << mbit;
        EXPECT_GE(bucket.largest_packet_bytes, 1500) << mbit;
        EXPECT_LE(bucket.burst_bytes, 256'000) << mbit;
        EXPECT_GT(bucket.queue_bytes, bucket.burst_bytes) << mbit;
    }
    EXPECT_EQ(token_bucket(1e3).burst_bytes, 31'250) << "250 microseconds of 1 Gbit/s";
    EXPECT_LE(token_bucket(100).burst_bytes, 5'000)
        << "a short message after a pause goes at the link's rate too";
}

}  // namespace
}  // namespace atl::netlab
