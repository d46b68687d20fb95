// The emulated link of `atoll bench outer`: when frames arrive, and when a sender is told to wait. Virtual time.
#include <gtest/gtest.h>

#include "cli/paced_transport.h"
#include "comm/site/inproc.h"
#include "support/fake_clock.h"
#include "support/site_transport.h"

namespace atl::cli {
namespace {

using namespace std::chrono_literals;

class PacedTransportTest : public testing::Test {
  protected:
    // 1 MB/s, 10 ms.
    void SetUp() override {
        auto sender = network_.join(test::transport_options(0));
        receiver_ = network_.join(test::transport_options(1));
        sender->set_peers({{SiteId(1), Incarnation(), receiver_->address()}});
        receiver_->set_peers({{SiteId(0), Incarnation(), sender->address()}});
        ASSERT_TRUE(test::wait_for(*sender, PeerEvent::Kind::connected));
        ASSERT_TRUE(test::wait_for(*receiver_, PeerEvent::Kind::connected));
        paced_ = std::make_unique<PacedTransport>(std::move(sender), LinkRate{8e6, 10ms}, clock_);
    }
    static Frame frame(std::int64_t wire_bytes) {
        Frame frame = test::packet_frame(1, "");
        const auto body = static_cast<std::size_t>(wire_bytes - frame.wire_bytes());
        frame.body = Payload::own(std::vector<std::byte>(body));
        EXPECT_EQ(frame.wire_bytes(), wire_bytes);
        return frame;
    }
    // What the link has brought until now.
    int arrived() {
        const SystemClock real;
        (void)paced_->poll(clock_.now());
        int frames = 0;
        while (const auto event = receiver_->poll(real.now()))
            frames += std::holds_alternative<Frame>(*event) ? 1 : 0;
        return frames;
    }

    InprocNetwork network_;
    test::FakeClock clock_;
    std::unique_ptr<SiteTransport> receiver_;
    std::unique_ptr<PacedTransport> paced_;
};

TEST_F(PacedTransportTest, a_frame_takes_its_bytes_over_the_rate_and_then_the_delay) {
    EXPECT_EQ(paced_->send(frame(20'000)), SendResult::accepted);
    EXPECT_EQ(paced_->send(frame(10'000)), SendResult::accepted);
    clock_.advance(29ms);
    EXPECT_EQ(arrived(), 0) << "20 ms to leave, 10 on the way";
    clock_.advance(1ms);
    EXPECT_EQ(arrived(), 1);
    clock_.advance(9ms);
    EXPECT_EQ(arrived(), 0);
    clock_.advance(1ms);
    EXPECT_EQ(arrived(), 1) << "behind the first one";
}

TEST_F(PacedTransportTest, a_full_link_refuses_and_says_when_it_can_go_on) {
    EXPECT_EQ(paced_->send(frame(60'000)), SendResult::accepted);
    EXPECT_EQ(paced_->send(frame(1'000)), SendResult::no_credit) << "60 ms are more than the 50 it queues";
    EXPECT_FALSE(paced_->poll(clock_.now()));
    clock_.advance(10ms);
    const auto event = paced_->poll(clock_.now());
    ASSERT_TRUE(event);
    EXPECT_EQ(std::get<PeerEvent>(*event).kind, PeerEvent::Kind::writable);
    EXPECT_EQ(std::get<PeerEvent>(*event).site, SiteId(1));
    EXPECT_EQ(paced_->send(frame(1'000)), SendResult::accepted);
}

TEST_F(PacedTransportTest, another_rate_holds_for_what_is_sent_from_then_on) {
    EXPECT_EQ(paced_->send(frame(10'000)), SendResult::accepted);
    paced_->set_rate({80e6, 10ms});
    EXPECT_EQ(paced_->send(frame(10'000)), SendResult::accepted);
    clock_.advance(20ms);
    EXPECT_EQ(arrived(), 1);
    clock_.advance(1ms);
    EXPECT_EQ(arrived(), 1);
}

TEST_F(PacedTransportTest, without_a_rate_no_more_than_64_mib_are_on_their_way) {
    paced_->set_rate({0, 10ms});
    const Frame large = frame(8 << 20);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(paced_->send(large), SendResult::accepted);
    EXPECT_EQ(paced_->send(frame(1'000)), SendResult::no_credit);
    EXPECT_FALSE(paced_->poll(clock_.now()));
    clock_.advance(10ms);
    EXPECT_EQ(arrived(), 2) << "the others wait for credit of the peer, whose window is 16 MiB";
    EXPECT_EQ(paced_->send(frame(1'000)), SendResult::accepted);
}

TEST_F(PacedTransportTest, without_rate_and_delay_frames_pass_at_once) {
    paced_->set_rate({});
    EXPECT_EQ(paced_->send(frame(5'000'000)), SendResult::accepted);
    EXPECT_EQ(arrived(), 1);
}

}  // namespace
}  // namespace atl::cli
