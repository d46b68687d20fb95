// netlab with real processes: its links bound what hosts measure, and nothing of a lab outlives it.
// Needs root, as netlab does; without it these tests fail and netlab's own message says why.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/child_process.h"
#include "core/file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

using std::chrono::seconds;

class Netlab : public testing::Test {
  protected:
    ChildProcess start(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), std::string(std::getenv("ATOLL_BINARY_DIR")) + "/netlab");
        std::filesystem::remove(output_);
        return ChildProcess({.command = arguments, .output = output_});
    }

    int run(const std::vector<std::string>& arguments) {
        ChildProcess lab = start(arguments);
        const auto end = lab.wait_for(seconds(60));
        EXPECT_TRUE(end.has_value()) << "still running after 60 s";
        return end ? end->code : -1;
    }

    // Runs the probe in a lab with these options; the numbers that it printed.
    std::vector<double> measure(std::vector<std::string> options, const std::string& mode, int argument) {
        const std::string probe = std::string(std::getenv("ATOLL_SOURCE_DIR")) + "/tests/e2e/netlab_probe.py";
        options.insert(options.end(), {"--", "python3", probe, mode, std::to_string(argument)});
        EXPECT_EQ(run(options), 0) << output();
        std::istringstream text(output());
        std::vector<double> numbers;
        for (std::string word; text >> word;) numbers.push_back(std::strtod(word.c_str(), nullptr));
        return numbers;
    }

    std::string output() const { return make_system_file_system()->read_text(output_); }

    // A lab whose host site0 runs `script` after it has told us the name of its namespace.
    ChildProcess start_host(const std::string& script) {
        const std::string fifo = directory_.path() / "fifo";
        EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
        ChildProcess lab = start({"--hosts", "2", "--", "ip", "netns", "exec", "site0", "sh", "-c",
                                  "readlink /proc/self/ns/net > " + fifo + "; " + script});
        std::ifstream(fifo) >> namespace_;  // blocks until the host writes
        EXPECT_TRUE(namespace_.starts_with("net:[")) << output();
        return lab;
    }

    bool anybody_is_in_the_namespace() const {
        std::error_code ignored;
        for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
            if (std::filesystem::read_symlink(process.path() / "ns/net", ignored) == namespace_) return true;
        }
        return false;
    }

    // Killed processes leave /proc when their parent or init has seen to them.
    void expect_namespace_is_left() const {
        const auto deadline = std::chrono::steady_clock::now() + seconds(20);
        while (anybody_is_in_the_namespace() && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::yield();
        }
        EXPECT_FALSE(anybody_is_in_the_namespace()) << namespace_ << " still has a process";
        std::ifstream mounts("/proc/self/mountinfo");
        const std::string text(std::istreambuf_iterator<char>(mounts), {});
        EXPECT_EQ(text.find(namespace_), std::string::npos) << "a mount holds the namespace";
    }

  private:
    test::TemporaryDirectory directory_;
    std::filesystem::path output_ = directory_.path() / "output";
    std::string namespace_;
};

TEST_F(Netlab, a_round_trip_takes_at_least_twice_the_one_way_delay) {
    const auto result = measure({"--delay-ms", "40"}, "round_trip", 1);
    ASSERT_EQ(result.size(), 2u) << output();
    EXPECT_GE(result[0], 0.080);
    EXPECT_EQ(result[1], 1);
}

TEST_F(Netlab, a_transfer_takes_at_least_its_bytes_divided_by_the_rate) {
    const auto result = measure({"--delay-ms", "1", "--rate-mbit", "8"}, "transfer", 1'000'000);
    ASSERT_EQ(result.size(), 1u) << output();
    EXPECT_GE(result[0], 1.0);
}

TEST_F(Netlab, a_link_of_the_kernels_carries_no_more_than_its_rate) {
    const auto result = measure({"--kernel", "--rate-mbit", "80"}, "transfer", 4'000'000);
    ASSERT_EQ(result.size(), 1u) << output();
    EXPECT_GE(result[0], (4'000'000 - 4'500) * 8 / 80e6) << "all but what the bucket holds";
}

TEST_F(Netlab, a_link_of_the_kernels_has_a_rate_alone_and_two_hosts) {
    EXPECT_EQ(run({"--kernel", "--delay-ms", "1", "--", "true"}), 2);
    EXPECT_NE(output().find("--delay-ms"), std::string::npos) << output();
    EXPECT_EQ(run({"--kernel", "--hosts", "3", "--", "true"}), 2);
    EXPECT_NE(output().find("--kernel joins 2"), std::string::npos) << output();
}

TEST_F(Netlab, loses_about_as_many_packets_as_asked_for) {
    const auto result = measure({"--delay-ms", "1", "--loss-percent", "30"}, "round_trip", 400);
    ASSERT_EQ(result.size(), 2u) << output();
    EXPECT_GT(result[1], 400 * 0.49 * 0.7) << "there and back 0.7 x 0.7 of them survive";
    EXPECT_LT(result[1], 400 * 0.49 * 1.3);
}

TEST_F(Netlab, passes_the_commands_exit_code_on_and_reports_the_traffic) {
    test::TemporaryDirectory directory;
    const std::string report = directory.path() / "report.json";
    EXPECT_EQ(run({"--report", report, "--", "sh", "-c", "exit 7"}), 7) << output();
    EXPECT_NE(make_system_file_system()->read_text(report).find("\"sent_packets\""), std::string::npos);
}

TEST_F(Netlab, leaves_no_process_and_no_namespace_behind_when_the_command_ends) {
    ChildProcess lab = start_host("(sleep 1000 &) ; exit 0");
    ASSERT_TRUE(lab.wait_for(seconds(60)).has_value());
    expect_namespace_is_left();
}

TEST_F(Netlab, ends_with_the_command_when_that_is_killed) {
    ChildProcess lab = start_host("(sleep 1000 &) ; kill -KILL $$");
    const auto end = lab.wait_for(seconds(60));
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->code, 128 + SIGKILL) << output();
    expect_namespace_is_left();
}

TEST_F(Netlab, passes_a_termination_on_and_cleans_up) {
    ChildProcess lab = start_host("exec sleep 1000");
    lab.send_signal(SIGTERM);
    const auto end = lab.wait_for(seconds(60));
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->code, 128 + SIGTERM) << output();
    expect_namespace_is_left();
}

TEST_F(Netlab, leaves_nothing_behind_when_it_is_killed_itself) {
    ChildProcess lab = start_host("exec sleep 1000");
    lab.send_signal(SIGKILL);
    ASSERT_TRUE(lab.wait_for(seconds(60)).has_value());
    expect_namespace_is_left();
}

TEST_F(Netlab, refuses_options_that_make_no_lab_with_exit_code_2_and_a_reason) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
        {{"--hosts", "1", "--", "true"}, "--hosts"},
        {{"--delay-ms", "-3", "--", "true"}, "--delay-ms"},
        {{"--rate-mbit", "fast", "--", "true"}, "--rate-mbit"},
        {{"--loss-percent", "101", "--", "true"}, "--loss-percent"},
        {{"--name", "a/b", "--", "true"}, "--name"},
        {{"--pair", "0-5:10", "--", "true"}, "--pair"},
        {{"--pair", "0-1:ten", "--", "true"}, "--pair"},
        {{"--bandwidth", "3", "--", "true"}, "--bandwidth"},
        {{"--hosts", "2"}, "command"},
    };
    for (const auto& [arguments, expected] : cases) {
        EXPECT_EQ(run(arguments), 2) << expected;
        EXPECT_NE(output().find(expected), std::string::npos) << output();
    }
}

}  // namespace
}  // namespace atl
