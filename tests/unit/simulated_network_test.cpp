// The simulated network: same seed, same history; every fault it offers happens and is survived by the links.
#include "comm/site/sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/site_transport.h"

namespace atl {
namespace {

using namespace test;

struct Pair {
    explicit Pair(std::uint64_t seed, SimulatedLink link = {}) : network(seed, link) {
        one = network.join(transport_options(0));
        other = network.join(transport_options(1));
        one->set_peers({{SiteId(1), Incarnation(), ""}});
        other->set_peers({{SiteId(0), Incarnation(), ""}});
    }
    void run(Milliseconds duration) {
        const TimePoint end = network.clock().now() + duration;
        while (network.clock().now() < end) {
            network.advance(end);
            drain(*one);
            drain(*other);
        }
    }
    void drain(SiteTransport& transport) {
        while (auto event = transport.poll({})) {
            if (const auto* frame = std::get_if<Frame>(&*event)) {
                arrivals.emplace_back(frame->chunk, network.clock().now());
            } else {
                events.push_back(std::get<PeerEvent>(*event));
            }
        }
    }
    int count(PeerEvent::Kind kind) const {
        return static_cast<int>(
            std::ranges::count_if(events, [&](const PeerEvent& event) { return event.kind == kind; }));
    }

    SimulatedNetwork network;
    std::unique_ptr<SiteTransport> one;
    std::unique_ptr<SiteTransport> other;
    std::vector<std::pair<std::int32_t, TimePoint>> arrivals;
    std::vector<PeerEvent> events;
};

void send_many(Pair& pair, int frames, std::size_t bytes = 100) {
    for (int chunk = 0; chunk < frames; ++chunk) {
        ASSERT_EQ(pair.one->send(packet_frame(1, std::string(bytes, 'x'), chunk)), SendResult::accepted);
    }
}

TEST(SimulatedNetwork, the_same_seed_gives_the_same_history) {
    SimulatedLink link;
    link.most_delay = std::chrono::milliseconds(20);
    link.loss = 0.1;
    link.duplication = 0.1;
    link.reordering = 0.3;
    const auto history = [&](std::uint64_t seed) {
        Pair pair(seed, link);
        pair.run(Milliseconds(200));
        send_many(pair, 100);
        pair.run(Milliseconds(200));
        return pair.arrivals;
    };
    EXPECT_EQ(history(1), history(1));
    EXPECT_NE(history(1), history(2));
}

TEST(SimulatedNetwork, losses_duplicates_and_overtaking_happen) {
    SimulatedLink link;
    link.most_delay = std::chrono::milliseconds(20);
    link.reordering = 0.5;
    link.loss = 0.2;
    link.duplication = 0.2;
    Pair pair(3, link);
    pair.run(Milliseconds(500));
    send_many(pair, 200);
    pair.run(Milliseconds(500));
    std::map<std::int32_t, int> copies;
    for (const auto& [chunk, at] : pair.arrivals) ++copies[chunk];
    EXPECT_LT(copies.size(), 190u);
    EXPECT_GT(copies.size(), 120u);
    EXPECT_GT(pair.arrivals.size(), copies.size());
    EXPECT_FALSE(
        std::ranges::is_sorted(pair.arrivals, {}, [](const auto& arrival) { return arrival.first; }));
}

TEST(SimulatedNetwork, a_rate_limit_and_a_delay_give_the_time_of_a_transfer) {
    SimulatedLink link;
    link.least_delay = link.most_delay = std::chrono::milliseconds(25);
    link.bytes_per_second = 1e6;
    Pair pair(1, link);
    pair.run(Milliseconds(200));
    const TimePoint begin = pair.network.clock().now();
    send_many(pair, 10, 100'000);
    pair.run(Milliseconds(2000));
    ASSERT_EQ(pair.arrivals.size(), 10u);
    EXPECT_NEAR(seconds(pair.arrivals.back().second - begin), 1.025, 0.01);
}

TEST(SimulatedNetwork, corrupt_frames_are_counted_and_reported_but_never_delivered) {
    SimulatedLink link;
    link.corruption = 0.5;
    Pair pair(4, link);
    pair.run(Milliseconds(2000));
    send_many(pair, 100);
    pair.run(Milliseconds(100));
    EXPECT_GT(pair.count(PeerEvent::Kind::corrupt), 20);
    EXPECT_LT(pair.arrivals.size(), 80u);
    EXPECT_EQ(pair.other->counters().front().frames_corrupt + pair.one->counters().front().frames_corrupt,
              pair.count(PeerEvent::Kind::corrupt));
}

TEST(SimulatedNetwork, a_cut_is_seen_by_both_sides_and_a_healed_link_comes_back) {
    Pair pair(5);
    pair.run(Milliseconds(100));
    EXPECT_EQ(pair.count(PeerEvent::Kind::connected), 2);
    pair.network.cut(SiteId(0), SiteId(1), false);
    pair.run(Milliseconds(100));
    EXPECT_EQ(pair.count(PeerEvent::Kind::lost), 2);
    pair.network.heal(SiteId(0), SiteId(1));
    pair.run(Milliseconds(1000));
    EXPECT_EQ(pair.count(PeerEvent::Kind::connected), 4);
    send_many(pair, 3);
    pair.run(Milliseconds(100));
    EXPECT_EQ(pair.arrivals.size(), 3u);
}

TEST(SimulatedNetwork, lossy_links_never_run_out_of_credit) {
    SimulatedLink link;
    link.loss = 0.3;
    Pair pair(6, link);
    pair.run(Milliseconds(1000));
    int accepted = 0;
    for (int turn = 0; turn < 300; ++turn) {  // 300 MB through a window of 16
        accepted += pair.one->send(packet_frame(1, std::string(1'000'000, 'x'))) == SendResult::accepted;
        pair.run(Milliseconds(5));
    }
    EXPECT_EQ(accepted, 300);
}

}  // namespace
}  // namespace atl
