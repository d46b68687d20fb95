// Processes that die are started again with their group, as often as allowed, and an answer is not retried.
#include "cli/supervisor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "core/file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

const SupervisorOptions kQuick{.first_pause = Milliseconds(1), .longest_pause = Milliseconds(2)};

SupervisedGroup shell_group(std::vector<std::string> scripts, int restarts) {
    return {.name = "site east",
            .processes =
                [scripts](int start) {
                    std::vector<ChildOptions> children;
                    for (const auto& script : scripts)
                        children.push_back({.command = {"sh", "-c", script},
                                            .environment = {{"START", std::to_string(start)}}});
                    return children;
                },
            .process_name = [](std::size_t process) { return "rank " + std::to_string(process); },
            .restarts = restarts};
}

class SupervisorTest : public testing::Test {
  protected:
    std::string file(const char* name) const { return (directory_.path() / name).string(); }
    std::int64_t lines(const char* name) const {
        const auto text = make_system_file_system()->read_text(file(name));
        return std::ranges::count(text, '\n');
    }

    test::TemporaryDirectory directory_;
    Log log_{"test", LogLevel::error};
};

TEST_F(SupervisorTest, a_group_is_done_when_all_its_processes_have_ended_well) {
    EXPECT_EQ(supervise({shell_group({"exit 0", "exit 0"}, 0)}, kQuick, log_), 0);
}

TEST_F(SupervisorTest, a_killed_rank_takes_its_group_down_and_all_start_again) {
    const auto counting = "echo x >> " + file("starts") + "; ";
    // Rank 0 would wait for ever at the first start: only the death of rank 1 ends it.
    EXPECT_EQ(supervise({shell_group({counting + "[ $START = 0 ] && exec sleep 1000; exit 0",
                                      "until [ -s " + file("starts") +
                                          " ]; do :; done; [ $START = 0 ] && kill -9 $$; exit 0"},
                                     2)},
                        kQuick, log_),
              0);
    EXPECT_EQ(lines("starts"), 2);
}

TEST_F(SupervisorTest, a_group_that_keeps_dying_is_given_up_after_its_restarts) {
    EXPECT_EQ(supervise({shell_group({"echo x >> " + file("starts") + "; kill -9 $$"}, 3)}, kQuick, log_), 1);
    EXPECT_EQ(lines("starts"), 4);
}

TEST_F(SupervisorTest, wrong_input_is_not_retried) {
    EXPECT_EQ(supervise({shell_group({"echo x >> " + file("starts") + "; exit 2"}, 3)}, kQuick, log_), 2);
    EXPECT_EQ(lines("starts"), 1);
}

TEST_F(SupervisorTest, wrong_input_of_one_group_ends_the_others_too) {
    EXPECT_EQ(supervise({shell_group({"exec sleep 1000"}, 0), shell_group({"exit 2"}, 0)}, kQuick, log_), 2);
}

TEST_F(SupervisorTest, an_interrupt_reaches_the_processes_and_they_end_by_themselves) {
    const auto supervisor = std::to_string(::getpid());
    for (const std::string signal : {"TERM", "HUP"})
        EXPECT_EQ(supervise({shell_group({"trap 'echo told >> " + file("told") + "; exit 0' TERM; kill -" +
                                          signal + " " + supervisor + "; while :; do :; done"},
                                         0)},
                            kQuick, log_),
                  0);
    EXPECT_EQ(lines("told"), 2);
}

TEST_F(SupervisorTest, what_was_started_to_outlive_its_terminal_is_not_interrupted_when_that_goes_away) {
    const auto before = ::signal(SIGHUP, SIG_IGN);
    const auto supervisor = std::to_string(::getpid());
    EXPECT_EQ(supervise({shell_group({"trap 'exit 1' TERM; kill -HUP " + supervisor + "; exit 0"}, 0)},
                        kQuick, log_),
              0);
    ::signal(SIGHUP, before);
}

TEST_F(SupervisorTest, a_group_that_comes_back_too_late_is_not_waited_for) {
    auto leader = shell_group({"until [ -s " + file("starts") + " ]; do :; done; exit 0"}, 0);
    leader.essential = false;
    leader.leads = true;
    auto options = kQuick;
    options.patience = Milliseconds(50);
    EXPECT_EQ(
        supervise(
            {shell_group({"echo x >> " + file("starts") + "; [ $START = 0 ] && kill -9 $$; exec sleep 1000"}, 3),
             leader},
            options, log_),
        0);
}

TEST_F(SupervisorTest, a_leader_that_failed_does_not_leave_the_others_waiting) {
    const auto ready = file("ready");
    auto leader = shell_group({"until [ -e " + ready + " ]; do :; done; exit 1"}, 0);
    leader.leads = true;
    leader.essential = false;
    const auto site = shell_group(
        {"trap 'echo told >> " + file("told") + "; exit 0' TERM; : > " + ready + "; while :; do :; done"}, 0);
    EXPECT_EQ(supervise({site, leader}, kQuick, log_), 1);
    EXPECT_EQ(lines("told"), 1);
}

TEST_F(SupervisorTest, a_group_that_is_not_essential_is_stopped_with_the_run) {
    auto coordinator = shell_group({"exec sleep 1000"}, 0);
    coordinator.essential = false;
    EXPECT_EQ(supervise({shell_group({"exit 0"}, 0), coordinator}, kQuick, log_), 0);
}

}  // namespace
}  // namespace atl
