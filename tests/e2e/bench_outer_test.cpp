// `atoll bench outer` as people and scripts call it: real processes on loopback, one JSON object. No figure of speed is
// asserted beyond what the emulated waits and links force on any machine.
#include <gtest/gtest.h>

#include "support/atoll_commands.h"

namespace atl {
namespace {

class BenchOuterTest : public testing::Test {
  protected:
    nlohmann::json bench(const std::string& arguments) { return atoll_.json("bench outer --json " + arguments); }

    test::AtollCommands atoll_;
};

TEST_F(BenchOuterTest, measures_every_combination_of_rate_and_steps_beside_its_prediction) {
    const nlohmann::json report = bench(
        "--elements 20000 --codec identity --no-zstd --step-seconds 0.002 --inner-steps 2,4 --rate-mbit 2,0 "
        "--rounds 1");
    ASSERT_EQ(report["points"].size(), 4U);
    for (const auto& point : report["points"]) {
        EXPECT_EQ(point["sites_hold_equal_bits"], true);
        EXPECT_GE(point["payload_bytes"].get<std::int64_t>(), 80'000);
        EXPECT_GT(point["compute_utilization"].get<double>(), 0);
        EXPECT_LT(point["compute_utilization"].get<double>(), 1);
    }
    const auto& slow = report["points"][0];
    EXPECT_GE(slow["stall_seconds"].get<double>(), 0.3) << "80 kB over 2 Mbit/s";
    EXPECT_LT(slow["compute_utilization_predicted"].get<double>(), 0.02);
    EXPECT_EQ(report["rates"].size(), 2U);
}

TEST_F(BenchOuterTest, auto_takes_longer_rounds_where_the_link_is_slow_and_follows_a_change) {
    const nlohmann::json report = bench(
        "--elements 20000 --codec identity --no-zstd --step-seconds 0.001 --inner-steps auto --rate-mbit 50 "
        "--later-rate-mbit 2 --later-round 3 --rounds 8");
    const auto steps = report["points"][0]["inner_steps_by_round"].get<std::vector<std::int64_t>>();
    ASSERT_EQ(steps.size(), 8U);
    EXPECT_GT(steps.back(), steps[1]) << report["points"][0].dump();
    EXPECT_GE(steps.back(), 500) << "a stall of 0.32 s is 320 steps";
}

TEST_F(BenchOuterTest, fragments_are_exchanged_beside_the_steps_and_agreed_on) {
    const nlohmann::json report = bench(
        "--elements 20001 --codec identity --no-zstd --step-seconds 0.005 --inner-steps 12 --fragments 3 "
        "--overlap-steps 3 --rate-mbit 100 --rounds 2");
    const auto& point = report["points"][0];
    EXPECT_EQ(point["sites_hold_equal_bits"], true);
    EXPECT_EQ(point["rounds"], 2);
    EXPECT_GE(point["payload_bytes"].get<std::int64_t>(), 80'004) << "every fragment, once a round";
    EXPECT_DOUBLE_EQ(point["compute_utilization_predicted"].get<double>(), 1) << "2 ms fit beside 15 ms of steps";
}

TEST_F(BenchOuterTest, an_overlap_that_reaches_the_next_fragment_is_refused) {
    const auto refused = atoll_.run("bench outer --inner-steps 12 --fragments 3 --overlap-steps 4");
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.errors.find("must be below --inner-steps / --fragments"), std::string::npos);
}

}  // namespace
}  // namespace atl
