// What a site's uplink lets through, from what has arrived by when.
#include "exchange/uplink_meter.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

class Meter : public testing::Test {
  protected:
    // Bytes arrive at this rate, seen every 10 ms; something is always under way.
    void busy(Milliseconds duration, double bytes_per_second) {
        for (Milliseconds passed{0}; passed < duration; passed += kTick) {
            now_ += kTick;
            arrived_ += static_cast<std::int64_t>(bytes_per_second * seconds(kTick));
            meter_.sample(arrived_, 3, now_);
        }
    }
    void idle(Milliseconds duration) {
        now_ += duration;
        meter_.sample(arrived_, 0, now_);
    }

    static constexpr Milliseconds kTick{10};
    UplinkMeter meter_;
    TimePoint now_{};
    std::int64_t arrived_ = 0;
};

TEST_F(Meter, knows_the_rate_after_a_stretch_of_sending_whatever_the_pauses) {
    EXPECT_EQ(meter_.bytes_per_second(), 0);
    for (int round = 0; round < 3; ++round) {
        busy(Milliseconds(60), 0);  // the way to the peers and back
        busy(Milliseconds(600), 5e6);
        idle(Milliseconds(10'000));
        EXPECT_NEAR(meter_.bytes_per_second(), 5e6, 0.01 * 5e6);
    }
}

TEST_F(Meter, takes_no_short_burst_for_a_measure) {
    busy(Milliseconds(100), 1e9);
    idle(Milliseconds(1000));
    EXPECT_EQ(meter_.bytes_per_second(), 0);
}

TEST_F(Meter, follows_a_link_that_changes) {
    busy(Milliseconds(1000), 8e6);
    idle(Milliseconds(1000));
    for (int round = 0; round < 6; ++round) {
        busy(Milliseconds(1000), 2e6);
        idle(Milliseconds(1000));
    }
    EXPECT_NEAR(meter_.bytes_per_second(), 2e6, 0.1 * 2e6);
}

}  // namespace
}  // namespace atl
