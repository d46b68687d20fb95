// Processes of a real run are killed; the run goes on and ends as it should.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "support/training_run.h"

namespace atl::test {
namespace {

class KilledRun : public testing::Test {
  protected:
    void kill_one(const std::vector<std::string>& words) {
        const auto processes = find_processes(words);
        ASSERT_EQ(processes.size(), 1u);
        ASSERT_EQ(::kill(processes.front(), SIGKILL), 0);
    }

    TrainingRuns runs_;
    const std::map<std::string, std::string> long_enough_{{"train.steps", "4000"},
                                                          {"outer.inner_steps", "50"},
                                                          {"monitor.log_interval", "50"},
                                                          {"timeouts.reconnect_ms", "3000"}};
};

TEST_F(KilledRun, a_site_killed_in_a_round_comes_back_and_all_agree_in_the_end) {
    auto process = runs_.start("run", runs_.write_config({"east", "west"}, long_enough_));
    ASSERT_TRUE(runs_.wait_for_text("run", "round 1 committed")) << runs_.output("run");
    const pid_t west = find_processes({"atoll-worker", runs_.directory("run").string(), "--site west"}).at(0);
    std::ifstream variables("/proc/" + std::to_string(west) + "/environ");
    EXPECT_NE(std::string(std::istreambuf_iterator<char>(variables), {}).find("GOMP_SPINCOUNT=1000"), std::string::npos)
        << "a thread that waits must not keep the one it waits for from running";
    ASSERT_EQ(::kill(west, SIGKILL), 0);
    const auto outcome = runs_.finish("run", process);
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    EXPECT_EQ(outcome.summary.at("steps"), 4000);
    EXPECT_NE(outcome.log.find("signal 9"), std::string::npos) << outcome.log;
}

TEST_F(KilledRun, a_site_killed_while_fragments_stream_comes_back_and_all_agree_in_the_end) {
    auto changes = long_enough_;
    changes["outer.fragments"] = "2";
    changes["outer.overlap_steps"] = "5";
    auto process = runs_.start("run", runs_.write_config({"east", "west"}, changes));
    ASSERT_TRUE(runs_.wait_for_text("run", "round 1 committed")) << runs_.output("run");
    kill_one({"atoll-worker", runs_.directory("run").string(), "--site west"});
    const auto outcome = runs_.finish("run", process);
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    EXPECT_EQ(outcome.summary.at("steps"), 4000);
    EXPECT_NE(outcome.log.find("signal 9"), std::string::npos) << outcome.log;
}

TEST_F(KilledRun, a_coordinator_killed_in_a_round_is_started_again_and_no_round_is_lost) {
    auto process = runs_.start("run", runs_.write_config({"east", "west"}, long_enough_));
    ASSERT_TRUE(runs_.wait_for_text("run", "round 1 committed")) << runs_.output("run");
    kill_one({"atoll", "coordinator", runs_.directory("run").string()});
    const auto outcome = runs_.finish("run", process);
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    EXPECT_EQ(outcome.summary.at("rounds"), 80);
    EXPECT_EQ(outcome.summary.at("tokens"), 2 * 4000 * 4 * 32);
}

TEST_F(KilledRun, a_site_without_a_coordinator_gives_up_and_says_where_it_looked) {
    const auto config = runs_.write_config({"east", "west"}, {{"timeouts.startup_ms", "2000"},
                                                              {"island.restarts", "3"},
                                                              {"coordinator.address", "\"127.0.0.1:9\""}});
    const auto outcome = runs_.run("run", config, {"--site", "west"});
    EXPECT_EQ(outcome.status.code, 1) << outcome.log;
    EXPECT_NE(outcome.log.find("nothing from the coordinator (127.0.0.1:9)"), std::string::npos)
        << outcome.log;
    EXPECT_NE(outcome.log.find("timeouts.startup_ms"), std::string::npos) << outcome.log;
    EXPECT_EQ(outcome.log.find("restart"), std::string::npos) << "it would wait as long again\n" << outcome.log;
}

TEST_F(KilledRun, a_port_that_is_taken_ends_the_run_as_wrong_input_and_is_named) {
    const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    ASSERT_EQ(::bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(taken, 1), 0);
    socklen_t size = sizeof(address);
    ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
    const std::string place = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    for (const std::string key : {"site.west", "coordinator"}) {
        const auto outcome = runs_.run(key, runs_.write_config({"east", "west"}, {}),
                                       {"--set", key + ".address=\"" + place + "\""});
        EXPECT_EQ(outcome.status.code, 2) << outcome.log;
        EXPECT_NE(outcome.log.find("can't listen on " + place), std::string::npos) << outcome.log;
    }
    ::close(taken);
}

TEST_F(KilledRun, a_killed_rank_takes_its_island_down_which_comes_back_as_a_joiner) {
    auto changes = long_enough_;
    changes["train.steps"] = "1500";  // four ranks crowd two processors
    changes["island.ranks"] = "2";
    changes["island.dp"] = "2";
    auto process = runs_.start("run", runs_.write_config({"east", "west"}, changes));
    ASSERT_TRUE(runs_.wait_for_text("run", "round 1 committed")) << runs_.output("run");
    const auto ranks = find_processes({"atoll-worker", runs_.directory("run").string(), "--site west"});
    ASSERT_EQ(ranks.size(), 2u);
    ASSERT_EQ(::kill(ranks.back(), SIGKILL), 0);
    const auto outcome = runs_.finish("run", process);
    ASSERT_TRUE(outcome.status.ok()) << outcome.log;
    EXPECT_EQ(outcome.summary.at("steps"), 1500);
}

}  // namespace
}  // namespace atl::test
