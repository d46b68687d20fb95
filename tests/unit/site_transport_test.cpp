// The contract of SiteTransport, kept by every implementation that has real threads and real time.
#include "comm/site/transport.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/site/endpoint.h"
#include "comm/site/gloo_transport.h"
#include "comm/site/inproc.h"
#include "comm/site/tcp_transport.h"
#include "comm/site/zmq_transport.h"
#include "core/error.h"
#include "support/site_transport.h"

namespace atl {
namespace {

using namespace test;

// Makes transports of one kind that can reach one another.
class Wire {
  public:
    virtual ~Wire() = default;
    virtual std::unique_ptr<SiteTransport> join(TransportOptions options) = 0;
};

class InprocWire final : public Wire {
  public:
    std::unique_ptr<SiteTransport> join(TransportOptions options) override { return network_.join(options); }

  private:
    InprocNetwork network_;
};

class ZmqWire final : public Wire {
  public:
    std::unique_ptr<SiteTransport> join(TransportOptions options) override {
        return make_zmq_transport(options, {});
    }
};

class TcpWire final : public Wire {
  public:
    TcpWire(std::int32_t connections, bool shares_memory) {
        options_.connections = connections;
        options_.shares_memory = shares_memory;
    }
    std::unique_ptr<SiteTransport> join(TransportOptions options) override {
        return make_tcp_transport(options, options_);
    }

  private:
    TcpOptions options_;
};

class GlooWire final : public Wire {
  public:
    std::unique_ptr<SiteTransport> join(TransportOptions options) override {
        return make_gloo_transport(options, {});
    }
};

std::unique_ptr<Wire> make_wire(const std::string& kind) {
    if (kind == "zmq") return std::make_unique<ZmqWire>();
    if (kind == "gloo") return std::make_unique<GlooWire>();
    if (kind == "inproc") return std::make_unique<InprocWire>();
    return std::make_unique<TcpWire>(kind == "tcp_with_three_connections" ? 3 : 1, kind == "tcp_in_memory");
}

class SiteTransportTest : public testing::TestWithParam<std::string> {
  protected:
    std::unique_ptr<SiteTransport> join(int site, std::uint64_t incarnation = 1) {
        return wire_->join(transport_options(site, incarnation));
    }
    static Peer peer(const SiteTransport& other, std::uint64_t incarnation = 0) {
        return {other.self(), Incarnation(incarnation), other.address()};
    }
    static void introduce(SiteTransport& one, SiteTransport& other) {
        one.set_peers({peer(other)});
        other.set_peers({peer(one)});
        ASSERT_TRUE(wait_for(one, PeerEvent::Kind::connected));
        ASSERT_TRUE(wait_for(other, PeerEvent::Kind::connected));
    }

    std::unique_ptr<Wire> wire_ = make_wire(GetParam());
};

TEST_P(SiteTransportTest, a_frame_arrives_whole_and_says_where_it_belongs) {
    const auto one = join(0, 11);
    const auto other = join(1, 22);
    introduce(*one, *other);
    ASSERT_EQ(one->send(packet_frame(1, "there", 5)), SendResult::accepted);
    ASSERT_EQ(other->send(packet_frame(0, "back", 6)), SendResult::accepted);
    const auto there = next_frame(*other);
    const auto back = next_frame(*one);
    ASSERT_TRUE(there && back);
    EXPECT_EQ(text_of(*there), "there");
    EXPECT_EQ(text_of(*back), "back");
    EXPECT_EQ(there->from, SiteId(0));
    EXPECT_EQ(there->from_incarnation, Incarnation(11));
    EXPECT_EQ(there->to_incarnation, Incarnation(22));
    EXPECT_EQ(there->round, Round(7));
    EXPECT_EQ(there->fragment, FragmentId(2));
    EXPECT_EQ(there->attempt, Attempt(3));
    EXPECT_EQ(there->chunk, 5);
    EXPECT_EQ(there->leg, 1);
    EXPECT_EQ(there->prefix, (std::vector{std::byte{1}, std::byte{2}}));
}

TEST_P(SiteTransportTest, frames_of_one_sender_keep_their_order) {
    const auto one = join(0);
    const auto other = join(1);
    introduce(*one, *other);
    for (int chunk = 0; chunk < 500; ++chunk) {
        ASSERT_EQ(one->send(packet_frame(1, std::string(1000, 'x'), chunk)), SendResult::accepted);
    }
    std::vector<std::int32_t> came;
    for (int chunk = 0; chunk < 500; ++chunk) {
        const auto frame = next_frame(*other);
        ASSERT_TRUE(frame);
        came.push_back(frame->chunk);
    }
    // Several connections may overtake one another; nothing is lost or comes twice.
    if (GetParam() == "tcp_with_three_connections") std::ranges::sort(came);
    for (int chunk = 0; chunk < 500; ++chunk) ASSERT_EQ(came[static_cast<std::size_t>(chunk)], chunk);
}

TEST_P(SiteTransportTest, a_sender_stops_at_the_window_and_goes_on_when_frames_are_taken) {
    const auto one = join(0);
    const auto other = join(1);
    introduce(*one, *other);
    const std::string text(1 << 20, 'x');
    int accepted = 0;
    const SystemClock clock;
    const auto may_go_on = [&] {  // what was not written yet is bounded, too
        while (auto event = one->poll(clock.after(Milliseconds(300)))) {
            const auto* peer = std::get_if<PeerEvent>(&*event);
            if (peer != nullptr && peer->kind == PeerEvent::Kind::writable) return true;
        }
        return false;
    };
    do {
        while (one->send(packet_frame(1, text)) == SendResult::accepted) ++accepted;
    } while (may_go_on());
    EXPECT_EQ(accepted, 15);  // of the 16 MiB window, headers included
    EXPECT_EQ(one->send(packet_frame(1, text)), SendResult::no_credit);
    for (int frame = 0; frame < accepted; ++frame) ASSERT_TRUE(next_frame(*other));
    ASSERT_TRUE(wait_for(*one, PeerEvent::Kind::writable));
    EXPECT_EQ(one->send(packet_frame(1, text)), SendResult::accepted);
    EXPECT_TRUE(next_frame(*other));
}

TEST_P(SiteTransportTest, nothing_meant_for_a_dead_process_reaches_its_successor) {
    const auto one = join(0);
    auto other = join(1, 1);
    introduce(*one, *other);
    ASSERT_EQ(one->send(packet_frame(1, "for the first life")), SendResult::accepted);
    other.reset();
    ASSERT_TRUE(wait_for(*one, PeerEvent::Kind::lost));
    EXPECT_EQ(one->send(packet_frame(1, "for nobody")), SendResult::not_connected);
    other = join(1, 2);
    introduce(*one, *other);
    ASSERT_EQ(one->send(packet_frame(1, "for the second life")), SendResult::accepted);
    const auto frame = next_frame(*other);
    ASSERT_TRUE(frame);
    EXPECT_EQ(text_of(*frame), "for the second life");
}

TEST_P(SiteTransportTest, a_peer_of_another_incarnation_than_the_listed_one_is_ignored) {
    const auto one = join(0);
    const auto impostor = join(1, 5);
    const auto honest = join(2, 1);
    one->set_peers({peer(*impostor, 4), peer(*honest, 1)});
    impostor->set_peers({peer(*one)});
    honest->set_peers({peer(*one)});
    const auto event = poll_until(*one, [](const TransportEvent& event) {
        return std::get<PeerEvent>(event).kind == PeerEvent::Kind::connected;
    });
    ASSERT_TRUE(event);
    EXPECT_EQ(std::get<PeerEvent>(*event).site, SiteId(2));
    EXPECT_EQ(one->send(packet_frame(1, "no")), SendResult::not_connected);
}

TEST_P(SiteTransportTest, sites_that_are_not_listed_are_heard_only_where_that_was_asked_for) {
    auto options = transport_options(-1);
    options.accept_unlisted = true;
    const auto open = wire_->join(options);
    const auto closed = join(0);
    const auto stranger = join(1);
    stranger->set_peers({peer(*open), peer(*closed)});
    ASSERT_TRUE(wait_for(*open, PeerEvent::Kind::connected));
    ASSERT_TRUE(wait_for(*stranger, PeerEvent::Kind::connected));
    EXPECT_EQ(stranger->send(packet_frame(-1, "hello")), SendResult::accepted);
    EXPECT_EQ(stranger->send(packet_frame(0, "hello")), SendResult::not_connected);
    EXPECT_TRUE(next_frame(*open));
}

TEST_P(SiteTransportTest, payload_bytes_are_counted_exactly_on_both_sides) {
    const auto one = join(0);
    const auto other = join(1);
    introduce(*one, *other);
    for (int frame = 0; frame < 10; ++frame) (void)one->send(packet_frame(1, std::string(1000, 'x')));
    for (int frame = 0; frame < 10; ++frame) ASSERT_TRUE(next_frame(*other));
    EXPECT_EQ(one->counters().front().payload_bytes_sent, 10 * 1002);
    EXPECT_EQ(other->counters().front().payload_bytes_received, 10 * 1002);
    EXPECT_GE(one->counters().front().wire_bytes_sent, 10 * (1002 + kFrameHeaderBytes));
    EXPECT_EQ(other->counters().front().frames_corrupt, 0);
    // Loopback takes microseconds; only a TCP connection of our own can ask the system.
    const bool knows_distance = GetParam().starts_with("tcp") || GetParam() == "gloo";
    EXPECT_EQ(one->counters().front().round_trip_seconds > 0, knows_distance);
    EXPECT_LT(one->counters().front().round_trip_seconds, 10);
}

// Of all lengths that go another way: with the head, in one slot of memory, and too long for one.
TEST_P(SiteTransportTest, bodies_of_all_lengths_arrive_in_both_directions_and_are_kept_as_long_as_somebody_has_them) {
    const auto one = join(0);
    const auto other = join(1);
    introduce(*one, *other);
    std::vector<Frame> kept;
    for (const std::size_t length : {10UL, 20'000UL, 300'000UL, 1UL << 20, (1UL << 20) + 1, 3'000'000UL}) {
        for (const char filling : {'a', 'b'}) {
            const std::string text(length, filling);
            ASSERT_EQ(one->send(packet_frame(1, text)), SendResult::accepted);
            ASSERT_EQ(other->send(packet_frame(0, text)), SendResult::accepted);
            for (SiteTransport* receiver : {other.get(), one.get()}) {
                auto frame = next_frame(*receiver);
                ASSERT_TRUE(frame);
                EXPECT_TRUE(text_of(*frame) == text) << length;
                kept.push_back(std::move(*frame));
            }
        }
    }
    for (const Frame& frame : kept) {
        const std::string text = text_of(frame);
        EXPECT_EQ(text.find_first_not_of(text.front()), std::string::npos) << "was written over";
    }
    EXPECT_EQ(one->counters().front().shares_memory, GetParam() == "tcp_in_memory");
    EXPECT_EQ(other->counters().front().shares_memory, GetParam() == "tcp_in_memory");
}

TEST_P(SiteTransportTest, polling_ends_at_its_deadline) {
    const auto one = join(0);
    const SystemClock clock;
    const TimePoint begin = clock.now();
    EXPECT_FALSE(one->poll(clock.after(Milliseconds(30))));
    EXPECT_GE(clock.now() - begin, Milliseconds(30));
}

TEST_P(SiteTransportTest, an_interrupted_poll_ends_before_its_deadline) {
    const auto one = join(0);
    const SystemClock clock;
    one->interrupt();
    const TimePoint begin = clock.now();
    EXPECT_FALSE(one->poll(clock.after(Milliseconds(10'000))));
    EXPECT_LT(clock.now() - begin, Milliseconds(9'000));
}

INSTANTIATE_TEST_SUITE_P(Kinds, SiteTransportTest,
                         testing::Values("inproc", "zmq", "gloo", "tcp", "tcp_in_memory",
                                         "tcp_with_three_connections"),
                         [](const auto& info) { return info.param; });

TEST(TcpTransport, memory_is_shared_only_if_both_sides_want_it) {
    TcpOptions no_memory;
    no_memory.shares_memory = false;
    const auto one = make_tcp_transport(transport_options(0), {});
    const auto other = make_tcp_transport(transport_options(1), no_memory);
    one->set_peers({{SiteId(1), Incarnation(), other->address()}});
    other->set_peers({{SiteId(0), Incarnation(), one->address()}});
    ASSERT_TRUE(wait_for(*one, PeerEvent::Kind::connected));
    ASSERT_TRUE(wait_for(*other, PeerEvent::Kind::connected));
    ASSERT_EQ(one->send(packet_frame(1, std::string(100'000, 'x'))), SendResult::accepted);
    EXPECT_TRUE(next_frame(*other));
    EXPECT_FALSE(one->counters().front().shares_memory);
    EXPECT_FALSE(other->counters().front().shares_memory);
}

// Two endpoints without a wire: what lies in one's outbox is received by the other.
void carry(Endpoint& from, Endpoint& to) {
    for (OutgoingFrame& frame : from.drain_outbox()) {
        to.receive(from.options().self, frame.head, frame.body);
        from.written(frame.to, frame.wire_bytes());
    }
}

void introduce(Endpoint& one, Endpoint& other) {
    one.set_peers({{other.options().self, Incarnation(), ""}});
    other.set_peers({{one.options().self, Incarnation(), ""}});
    const SystemClock clock;
    for (int turn = 0; turn < 4; ++turn) {
        one.tick(clock.now());
        carry(one, other);
        other.tick(clock.now());
        carry(other, one);
    }
}

TEST(Endpoint, what_the_system_has_not_taken_yet_holds_back_further_sends_and_nothing_else_does) {
    constexpr std::int64_t kLimit = 1000;
    Endpoint one(
        transport_options(0), [] {}, kLimit);
    Endpoint other(transport_options(1), [] {});
    introduce(one, other);
    const Frame frame = packet_frame(1, std::string(900, 'x'));
    ASSERT_EQ(one.send(frame), SendResult::accepted);
    ASSERT_EQ(one.send(frame), SendResult::accepted);
    EXPECT_EQ(one.send(frame), SendResult::no_credit);
    while (one.take()) continue;
    one.written(SiteId(1), frame.wire_bytes());
    EXPECT_FALSE(one.take()) << "more than half of the limit still waits";
    one.written(SiteId(1), frame.wire_bytes());
    const auto event = one.take();
    ASSERT_TRUE(event);
    EXPECT_EQ(std::get<PeerEvent>(*event).kind, PeerEvent::Kind::writable);
    EXPECT_EQ(one.send(frame), SendResult::accepted);
}

TEST(Endpoint, who_has_said_goodbye_is_not_heard_again) {
    Endpoint one(transport_options(0), [] {});
    Endpoint leaving(transport_options(1), [] {});
    introduce(one, leaving);
    leaving.say_goodbye();
    carry(leaving, one);
    ASSERT_EQ(one.send(packet_frame(1, "too late")), SendResult::not_connected);
    // Before it is gone it still answers.
    const SystemClock clock;
    for (int turn = 0; turn < 4; ++turn) {
        one.tick(clock.after(Milliseconds(10'000)));
        carry(one, leaving);
        carry(leaving, one);
    }
    EXPECT_EQ(one.send(packet_frame(1, "for nobody")), SendResult::not_connected);
    Endpoint successor(transport_options(1, 2), [] {});
    introduce(one, successor);
    EXPECT_EQ(one.send(packet_frame(1, "for its successor")), SendResult::accepted);
}

TEST(ZmqTransport, an_occupied_port_is_a_clear_error_of_the_user) {
    const auto first = make_zmq_transport(transport_options(0), {});
    ZmqOptions options;
    options.bind = first->address();
    try {
        make_zmq_transport(transport_options(1), options);
        FAIL() << "two transports listen on one port";
    } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find(first->address()), std::string::npos) << error.what();
    }
}

TEST(ZmqTransport, a_side_that_can_only_dial_is_served_on_the_same_connection) {
    ZmqOptions no_address;
    no_address.bind = "";
    const auto listening = make_zmq_transport(transport_options(5), {});
    const auto dialling = make_zmq_transport(transport_options(2), no_address);
    listening->set_peers({{SiteId(2), Incarnation(), dialling->address()}});
    dialling->set_peers({{SiteId(5), Incarnation(), listening->address()}});
    ASSERT_TRUE(wait_for(*listening, PeerEvent::Kind::connected));
    ASSERT_EQ(listening->send(packet_frame(2, "to the dialler")), SendResult::accepted);
    EXPECT_TRUE(next_frame(*dialling));
}

}  // namespace
}  // namespace atl
