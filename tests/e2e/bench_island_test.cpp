// `atoll bench CONFIG` of an island of several ranks: real processes, all three executors in turn, pictures of a step.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/child_process.h"
#include "core/file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

class BenchIsland : public testing::Test {
  protected:
    // What it prints and leaves for an island cut like this.
    ExitStatus bench(const std::string& island) {
        std::filesystem::remove(file("out"));  // which would be appended to
        std::ofstream(file("bench.toml"))
            << "[model]\nlayers = 2\nhidden = 32\nheads = 2\nffn = 64\nvocab = 61\n"
               "context = 48\n[train]\nsequences_per_step = 4\nmicro_batch = 1\n"
               "[island]\n"
            << island;
        ChildProcess bench(
            {.command = {std::string(std::getenv("ATOLL_BINARY_DIR")) + "/atoll", "bench", file("bench.toml"),
                         "--steps", "3", "--json", "--svg", file("step.svg"), "--trace", file("step.json")},
             .environment = {},
             .output = file("out"),
             .processors = {}});
        return bench.wait_for(Milliseconds(60'000)).value_or(ExitStatus{.code = -1});
    }
    std::string file(const char* name) const { return (directory_.path() / name).string(); }
    std::string text(const char* name) const { return make_system_file_system()->read_text(file(name)); }

    test::TemporaryDirectory directory_;
};

TEST_F(BenchIsland, executors_agree_to_the_bit_and_memory_is_as_predicted_and_a_step_is_drawn) {
    for (const char* island : {"tp = 2\nschedule = \"strands\"\n", "pp = 2\n"}) {
        SCOPED_TRACE(island);
        const ExitStatus status = bench(island);
        ASSERT_TRUE(status.ok()) << to_string(status) << "\n" << text("out");
        const auto report = nlohmann::json::parse(text("out"));
        EXPECT_EQ(report.at("parameters_bit_equal"), true);
        EXPECT_EQ(report.at("peak_bytes_predicted"), report.at("peak_bytes_measured"));
        EXPECT_EQ(report.at("tokens_per_step"), 4 * 48);
        for (const char* mode : {"serial", "barrier", "event"}) {
            EXPECT_EQ(report.at(std::string(mode) + "_step_seconds").size(), 3u);
            EXPECT_GT(report.at(std::string(mode) + "_predicted_seconds"), 0.0);
        }
        // A mode that allows more never takes longer on the virtual clock.
        EXPECT_LE(report.at("event_predicted_seconds"), report.at("serial_predicted_seconds"));
        EXPECT_GT(report.at("comm_share"), 0.0);
        EXPECT_EQ(text("step.svg").substr(0, 4), "<svg");
        EXPECT_FALSE(nlohmann::json::parse(text("step.json")).at("traceEvents").empty());
    }
}

TEST_F(BenchIsland, a_rank_alone_has_no_overlap_to_draw) {
    EXPECT_EQ(bench("tp = 1\n").code, 2);
    EXPECT_NE(text("out").find("island.ranks must be above 1"), std::string::npos) << text("out");
}

}  // namespace
}  // namespace atl
