// `atoll bench CONFIG` of an island of several ranks: real processes, all three executors in turn, pictures of a step.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/child_process.h"
#include "core/file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

// Strands whose order depends on no measurement: what a plan says depends on the machine.
constexpr const char* kTurns = "tp = 2\nschedule = \"strands\"\nstrand_order = \"alternating\"\n";

class BenchIsland : public testing::Test {
  protected:
    // What it prints and leaves for an island cut like this.
    ExitStatus bench(const std::string& island, const std::vector<std::string>& more = {}) {
        std::filesystem::remove(file("out"));  // which would be appended to
        std::ofstream(file("bench.toml"))
            << "[model]\nlayers = 2\nhidden = 32\nheads = 2\nffn = 64\nvocab = 61\n"
               "context = 48\n[train]\nsequences_per_step = 4\nmicro_batch = 1\n"
               "[island]\n"
            << island;
        std::vector<std::string> command{std::string(std::getenv("ATOLL_BINARY_DIR")) + "/atoll",
                                         "bench",
                                         file("bench.toml"),
                                         "--steps",
                                         "3",
                                         "--json",
                                         "--svg",
                                         file("step.svg"),
                                         "--trace",
                                         file("step.json")};
        command.insert(command.end(), more.begin(), more.end());
        ChildProcess bench({.command = command, .environment = {}, .output = file("out"), .processors = {}});
        return bench.wait_for(Milliseconds(240'000)).value_or(ExitStatus{.code = -1});
    }
    std::string file(const char* name) const { return (directory_.path() / name).string(); }
    std::string text(const char* name) const { return make_system_file_system()->read_text(file(name)); }

    test::TemporaryDirectory directory_;
};

TEST_F(BenchIsland, executors_agree_to_the_bit_and_memory_is_as_predicted_and_a_step_is_drawn) {
    for (const char* island : {kTurns, "pp = 2\n"}) {
        SCOPED_TRACE(island);
        const ExitStatus status = bench(island);
        ASSERT_TRUE(status.ok()) << to_string(status) << "\n" << text("out");
        const auto report = nlohmann::json::parse(text("out"));
        EXPECT_EQ(report.at("gradients_bit_equal"), true);
        EXPECT_EQ(report.at("parameters_bit_equal"), true);
        EXPECT_EQ(report.at("peak_bytes_predicted"), report.at("peak_bytes_interleaved"));
        EXPECT_EQ(report.at("not_interleaved"), "");
        const std::int64_t serial = report.at("peak_bytes_serial"), layer = report.at("peak_bytes_layer");
        EXPECT_GT(layer, 0);
        EXPECT_EQ(report.at("peak_bytes_allowed"), serial + std::max(serial * 3 / 100, layer));
        EXPECT_GE(report.at("bound"), report.at("attainable"));
        EXPECT_EQ(report.at("tokens_per_step"), 4 * 48);
        for (const char* mode : {"serial", "barrier", "event"}) {
            EXPECT_EQ(report.at(std::string(mode) + "_step_seconds").size(), 3u);
            EXPECT_GT(report.at(std::string(mode) + "_predicted_seconds"), 0.0);
        }
        EXPECT_GT(report.at("comm_share"), 0.0);
        EXPECT_EQ(text("step.svg").substr(0, 4), "<svg");
        EXPECT_FALSE(nlohmann::json::parse(text("step.json")).at("traceEvents").empty());
    }
}

TEST_F(BenchIsland, a_profile_is_kept_and_used_again_where_it_holds) {
    const std::string strands = kTurns;
    const std::vector<std::string> keep{"--profile", file("profile.json")};
    ASSERT_TRUE(bench(strands, keep).ok()) << text("out");
    EXPECT_EQ(nlohmann::json::parse(text("out")).at("profile_measured"), true);
    const std::string profile = text("profile.json");
    ASSERT_TRUE(bench(strands, keep).ok()) << text("out");
    EXPECT_EQ(nlohmann::json::parse(text("out")).at("profile_measured"), false);
    EXPECT_EQ(text("profile.json"), profile);
    ASSERT_TRUE(bench(strands, {"--profile", file("profile.json"), "--set", "model.ffn=96"}).ok())
        << text("out");
    EXPECT_EQ(nlohmann::json::parse(text("out")).at("profile_measured"), true) << "another model";
    EXPECT_NE(text("profile.json"), profile);
    auto other = nlohmann::json::parse(text("profile.json"));
    other.at("fingerprint").at("library_version") = "1.0";
    std::ofstream(file("profile.json")) << other;
    ChildProcess plan(
        {.command = {std::string(std::getenv("ATOLL_BINARY_DIR")) + "/atoll", "plan", file("bench.toml"),
                     "--set", "model.ffn=96", "--profile", file("profile.json")},
         .environment = {},
         .output = file("plan"),
         .processors = {}});
    EXPECT_EQ(plan.wait_for(Milliseconds(60'000)).value_or(ExitStatus{.code = -1}).code, 2);
    EXPECT_NE(text("plan").find("library_version is "), std::string::npos) << text("plan");
}

TEST_F(BenchIsland, strands_that_fell_back_to_one_say_why_and_fail) {
    const ExitStatus status = bench(kTurns, {"--set", "train.sequences_per_step=1"});
    EXPECT_EQ(status.code, 1) << text("out");
    EXPECT_NE(text("out").find("micro-batch"), std::string::npos) << text("out");
}

TEST_F(BenchIsland, a_plan_is_run_and_agrees_to_the_bit_or_says_why_it_is_serial) {
    const ExitStatus status = bench("tp = 2\nschedule = \"strands\"\n", {});
    const auto report = nlohmann::json::parse(text("out"));
    EXPECT_EQ(report.at("gradients_bit_equal"), true);
    EXPECT_EQ(report.at("parameters_bit_equal"), true);
    EXPECT_FALSE(report.at("plan").get<std::string>().empty());
    EXPECT_EQ(status.code, report.at("not_interleaved") == "" ? 0 : 1) << text("out");
}

TEST_F(BenchIsland, plans_are_tried_and_the_planners_ingredients_measured_where_asked) {
    bench("tp = 2\nschedule = \"strands\"\n", {"--replay", "--ingredients"});
    const auto report = nlohmann::json::parse(text("out"));
    EXPECT_EQ(report.at("gradients_bit_equal"), true);
    const auto& ingredients = report.at("ingredients");
    ASSERT_EQ(ingredients.size(), 7U);
    EXPECT_EQ(ingredients.front().at("name"), "one op after another");
    for (const auto& ingredient : ingredients) {
        EXPECT_GT(ingredient.at("predicted_seconds"), 0.0);
        EXPECT_GT(ingredient.at("median_seconds"), 0.0);
    }
    if (!report.contains("tried")) return;  // where the profile promises nothing, nothing is tried
    EXPECT_EQ(report.at("tried").front().at("plan"), "serial");
    EXPECT_GE(report.at("tried").size(), 2U);
}

TEST_F(BenchIsland, a_link_that_cannot_be_is_refused) {
    EXPECT_EQ(bench("tp = 2\n", {"--link", "fast"}).code, 2);
    EXPECT_NE(text("out").find("--link fast: not a rate"), std::string::npos) << text("out");
    EXPECT_EQ(bench("tp = 2\ndp = 2\n", {"--link", "1G"}).code, 2);
    EXPECT_NE(text("out").find("--link joins two ranks"), std::string::npos) << text("out");
}

TEST_F(BenchIsland, ranks_on_two_hosts_agree_to_the_bit) {
    ASSERT_TRUE(bench(kTurns, {"--link", "300M"}).ok()) << text("out");
    const auto report = nlohmann::json::parse(text("out"));
    EXPECT_EQ(report.at("gradients_bit_equal"), true);
    EXPECT_EQ(report.at("parameters_bit_equal"), true);
}

TEST_F(BenchIsland, a_rank_alone_has_no_overlap_to_draw) {
    EXPECT_EQ(bench("tp = 1\n").code, 2);
    EXPECT_NE(text("out").find("island.ranks must be above 1"), std::string::npos) << text("out");
}

}  // namespace
}  // namespace atl
