// Which connections to a peer frames go out on, whatever order they come and end in.
#include "comm/site/outlet.h"

#include <gtest/gtest.h>

#include "support/site_transport.h"

namespace atl {
namespace {

class SilentStream final : public FrameStream {
  public:
    bool receive(std::span<std::byte>) override { return false; }
    bool send(std::span<const std::byte>, std::span<const std::byte>) override { return why_.empty(); }
    double round_trip_seconds() const override { return 0; }
    std::int64_t unacknowledged_bytes() const override { return 0; }
    void end(const std::string& why) override {
        if (why_.empty()) why_ = why;
    }
    std::string why() const override { return why_; }
    void set_send_rate(double bytes_per_second) override { send_rate = bytes_per_second; }
    void take_body(OutgoingFrame& frame) override {
        if (takes_bodies) frame.taken_by = this;
        if (meanwhile) meanwhile();
    }

    double send_rate = 0;
    bool takes_bodies = false;
    std::function<void()> meanwhile;

  private:
    std::string why_;
};

OutgoingFrame bulk_frame() {
    return {.to = SiteId(1), .kind = FrameKind::packet, .head = {}, .body = {}};
}

class OutletTest : public testing::Test {
  protected:
    std::shared_ptr<SilentStream> attach(std::int32_t lane, std::uint64_t process) {
        const auto stream = std::make_shared<SilentStream>();
        was_first_ = outlet_.attach(lane, Incarnation(process), stream);
        return stream;
    }
    // Is the end of it the end of the connection?
    bool ends_all(const Outlet::Stream& stream) {
        bool ended = false;
        outlet_.detach(stream, "gone", [&] { ended = true; });
        return ended;
    }
    bool carries(std::int32_t lane, const Outlet::Stream& stream) {
        outlet_.add(bulk_frame());
        return outlet_.next(lane, stream, clock_.now()).has_value();
    }

    Outlet outlet_;
    SystemClock clock_;
    bool was_first_ = false;
};

TEST_F(OutletTest, the_end_of_one_lane_is_the_end_of_all) {
    const auto first = attach(0, 7), second = attach(1, 7);
    EXPECT_TRUE(outlet_.is_open());
    EXPECT_TRUE(ends_all(second));
    EXPECT_EQ(first->why(), "gone");
    EXPECT_FALSE(outlet_.is_open());
    EXPECT_FALSE(ends_all(first));
}

TEST_F(OutletTest, lanes_that_come_before_the_first_carry_frames_once_that_is_there) {
    const auto second = attach(1, 7);
    EXPECT_TRUE(was_first_);
    EXPECT_FALSE(outlet_.is_open());
    EXPECT_FALSE(carries(1, second));
    attach(0, 7);
    EXPECT_TRUE(was_first_);
    EXPECT_TRUE(carries(1, second));
}

TEST_F(OutletTest, a_frame_whose_body_a_lane_has_taken_goes_out_on_that_one) {
    const auto first = attach(0, 7);
    first->takes_bodies = true;
    outlet_.add(bulk_frame());
    const auto second = attach(1, 7);
    second->takes_bodies = true;
    outlet_.add(bulk_frame());
    EXPECT_FALSE(outlet_.next(1, second, clock_.now()));
    EXPECT_EQ(outlet_.next(0, first, clock_.now())->taken_by, first.get());
    EXPECT_EQ(outlet_.next(1, second, clock_.now())->taken_by, nullptr) << "of several lanes none takes it";
}

TEST_F(OutletTest, a_body_that_was_taken_by_a_lane_that_ends_meanwhile_goes_out_on_its_successor) {
    const auto first = attach(0, 7);
    first->takes_bodies = true;
    Outlet::Stream successor;
    first->meanwhile = [&] {
        EXPECT_TRUE(ends_all(first));
        successor = attach(0, 7);
    };
    outlet_.add(bulk_frame());
    const auto frame = outlet_.next(0, successor, clock_.now());
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->taken_by, nullptr);
}

TEST_F(OutletTest, a_late_lane_of_a_process_that_is_gone_leaves_its_successors_alone) {
    EXPECT_TRUE(ends_all(attach(0, 7)));
    const auto late = attach(2, 7);
    const auto first = attach(0, 8), second = attach(2, 8);
    EXPECT_FALSE(carries(2, late));
    EXPECT_FALSE(ends_all(late));
    const auto later_still = attach(1, 7);
    EXPECT_FALSE(ends_all(later_still));
    EXPECT_EQ(first->why() + second->why(), "");
    EXPECT_TRUE(outlet_.is_open());
    EXPECT_TRUE(carries(2, second));
}

TEST_F(OutletTest, a_new_process_takes_the_place_of_the_one_before) {
    const auto first = attach(0, 7), second = attach(1, 7);
    const auto successor = attach(0, 8);
    EXPECT_FALSE(was_first_) << "frames may be lost";
    EXPECT_NE(first->why(), "");
    EXPECT_NE(second->why(), "");
    EXPECT_FALSE(ends_all(first));
    EXPECT_FALSE(ends_all(second));
    EXPECT_TRUE(carries(0, successor));
}

TEST_F(OutletTest, a_lane_that_is_made_again_means_that_the_others_end_too) {
    const auto first = attach(0, 7), second = attach(1, 7);
    const auto again = attach(1, 7);
    EXPECT_FALSE(was_first_);
    EXPECT_NE(first->why(), "");
    EXPECT_NE(second->why(), "");
    EXPECT_FALSE(outlet_.is_open());
    attach(0, 7);
    EXPECT_TRUE(was_first_);
    EXPECT_TRUE(carries(1, again));
}

TEST_F(OutletTest, a_connection_that_is_made_again_is_held_to_the_rate_of_the_one_before) {
    const auto before = attach(0, 7);
    outlet_.set_send_rate(6e6);
    EXPECT_EQ(before->send_rate, 6e6);
    EXPECT_TRUE(ends_all(before));
    EXPECT_EQ(attach(0, 7)->send_rate, 6e6);
}

TEST_F(OutletTest, lanes_share_the_rate_equally_whenever_they_come) {
    outlet_.set_send_rate(6e6);
    const auto first = attach(0, 7), second = attach(1, 7);
    EXPECT_EQ(first->send_rate, 3e6);
    EXPECT_EQ(second->send_rate, 3e6);
}

}  // namespace
}  // namespace atl
