// An island whose link changes under it: ranks on a loopback device that is shaped, and shaped anew while they train.
// Needs root, for a network of its own and tc.
#include <gtest/gtest.h>

#include "support/training_run.h"

namespace atl::test {
namespace {

ExitStatus change_rate(const ChildProcess& run, const std::string& rate) {
    ChildProcess tc(
        {.command = {"nsenter", "--net", "--target", std::to_string(run.pid()), "tc", "qdisc", "change",
                     "dev", "lo", "root", "tbf", "rate", rate, "burst", "64kb", "latency", "100ms"}});
    return tc.wait_for(Milliseconds(10'000)).value_or(ExitStatus{.code = -1});
}

class LinkChange : public testing::Test {
  protected:
    // One island of two ranks that cut its layers, 120 steps.
    std::filesystem::path config_with(const std::string& schedule) const {
        return runs_.write_config({"solo"}, {{"train.steps", "120"},
                                             {"train.micro_batch", "1"},
                                             {"outer.inner_steps", "40"},
                                             {"island.tp", "2"},
                                             {"island.schedule", schedule}});
    }
    std::string serial_hash() const {
        const auto serial = runs_.run("serial", config_with("\"serial\""));
        EXPECT_TRUE(serial.status.ok()) << serial.log;
        return serial.hash();
    }
    static bool has_planned_again(const std::string& log) {
        return log.find("[plan] planning strands again: 50 steps took") != std::string::npos;
    }

    const TrainingRuns runs_;
};

TEST_F(LinkChange, strands_are_planned_again_when_the_rate_changes_and_the_parameters_stay_the_same) {
    // From slow to fast: on the slow link the steps to come leave time to change it.
    const auto config = config_with("\"strands\"");
    ChildProcess process = runs_.start_on_shaped_loopback("20mbit", "strands", config);
    ASSERT_TRUE(runs_.wait_for_text("strands", " 52/120 ")) << runs_.output("strands");
    ASSERT_TRUE(change_rate(process, "2gbit").ok());
    const auto strands = runs_.finish("strands", process);
    ASSERT_TRUE(strands.status.ok()) << strands.log;
    EXPECT_TRUE(has_planned_again(strands.log)) << strands.log;
    EXPECT_EQ(strands.hash(), serial_hash());
}

TEST_F(LinkChange, a_run_that_goes_on_over_another_link_plans_again_after_its_first_steps) {
    const auto config = config_with("\"strands\"");
    ChildProcess slow = runs_.start_on_shaped_loopback("20mbit", "strands", config, {"--stop-at", "52"});
    const auto first = runs_.finish("strands", slow);
    ASSERT_TRUE(first.status.ok()) << first.log;
    EXPECT_FALSE(has_planned_again(first.log)) << first.log;
    ChildProcess fast = runs_.start_on_shaped_loopback("2gbit", "strands", config);
    const auto second = runs_.finish("strands", fast);
    ASSERT_TRUE(second.status.ok()) << second.log;
    EXPECT_TRUE(has_planned_again(second.log)) << second.log;
    EXPECT_EQ(second.hash(), serial_hash());
}

}  // namespace
}  // namespace atl::test
