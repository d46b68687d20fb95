// Processes we start are watched to their end and never outlive their owner.
#include "core/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

constexpr Milliseconds kPatience{10'000};

TEST(ChildProcess, reports_exit_codes_and_signals) {
    ChildProcess exits({.command = {"sh", "-c", "exit 3"}});
    EXPECT_EQ(to_string(exits.wait_for(kPatience).value()), "exit code 3");
    ChildProcess killed({.command = {"sleep", "100"}});
    EXPECT_FALSE(killed.poll());
    killed.send_signal(SIGKILL);
    EXPECT_EQ(to_string(killed.wait_for(kPatience).value()), "signal 9 (Killed)");
}

TEST(ChildProcess, passes_environment_and_appends_output_to_a_file) {
    const test::TemporaryDirectory directory;
    const auto output = directory.path() / "out";
    ChildProcess child({.command = {"sh", "-c", "echo $RANK; echo bad >&2"},
                        .environment = {{"RANK", "7"}},
                        .output = output});
    EXPECT_TRUE(child.wait_for(kPatience).value().ok());
    EXPECT_EQ(make_system_file_system()->read_text(output), "7\nbad\n");
}

TEST(ChildProcess, a_program_that_does_not_exist_is_an_error_that_names_it) {
    try {
        ChildProcess({.command = {"/no/such/program"}});
        FAIL();
    } catch (const StorageError& error) {
        EXPECT_STREQ(error.what(), "[process] can't start /no/such/program: No such file or directory");
    }
}

TEST(ChildProcess, is_killed_when_its_owner_goes) {
    pid_t pid = 0;
    {
        const ChildProcess child({.command = {"sleep", "100"}});
        pid = child.pid();
        EXPECT_EQ(::kill(pid, 0), 0);
    }
    EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(ChildProcess, what_it_started_is_killed_with_it) {
    int ends[2];  // the child's child keeps the writing end open for as long as it lives
    ASSERT_EQ(::pipe(ends), 0);
    const test::TemporaryDirectory directory;
    const auto ready = directory.path() / "ready";
    {
        const ChildProcess child({.command = {"sh", "-c", "sleep 100 & : > " + ready.string() + "; wait"}});
        while (!std::filesystem::exists(ready)) ::sched_yield();
    }
    ::close(ends[1]);
    pollfd all_gone{ends[0], POLLIN, 0};
    EXPECT_EQ(::poll(&all_gone, 1, static_cast<int>(kPatience.count())), 1);
    ::close(ends[0]);
}

}  // namespace
}  // namespace atl
