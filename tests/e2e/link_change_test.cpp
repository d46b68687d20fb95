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

TEST(LinkChange, strands_are_planned_again_when_the_rate_of_the_link_changes_and_the_parameters_stay_the_same) {
    const TrainingRuns runs;
    const auto config_with = [&](const std::string& schedule) {
        return runs.write_config({"solo"}, {{"train.steps", "120"},
                                            {"train.micro_batch", "1"},
                                            {"outer.inner_steps", "40"},
                                            {"island.tp", "2"},
                                            {"island.schedule", schedule}});
    };
    const auto serial = runs.run("serial", config_with("\"serial\""));
    ASSERT_TRUE(serial.status.ok()) << serial.log;

    // From slow to fast: on the slow link the steps to come leave time to change it.
    ChildProcess process = runs.start_on_shaped_loopback("40mbit", "strands", config_with("\"strands\""));
    ASSERT_TRUE(runs.wait_for_text("strands", " 52/120 ")) << runs.output("strands");
    ASSERT_TRUE(change_rate(process, "2gbit").ok());
    const auto strands = runs.finish("strands", process);
    ASSERT_TRUE(strands.status.ok()) << strands.log;
    EXPECT_NE(strands.log.find("[plan] planning strands again: 50 steps took"), std::string::npos)
        << strands.log;
    EXPECT_EQ(strands.hash(), serial.hash());
}

}  // namespace
}  // namespace atl::test
