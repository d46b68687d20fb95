// What `atoll run` tells of a run from the summaries of its sites.
#include "cli/run_summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/temporary_directory.h"

namespace atl::cli {
namespace {

class RunSummaryTest : public testing::Test {
  protected:
    void write(const std::string& site, std::int64_t steps, const std::string& hash) {
        files_->create_directories(directory_.path() / "summaries");
        files_->write_text_atomically(
            directory_.path() / "summaries" / (site + ".json"),
            nlohmann::json{{"steps", steps}, {"parameters_blake2b", hash}, {"train_loss", 2.0}}.dump());
    }
    RunSummary summary(const std::vector<std::string>& sites) {
        return summarize_run(*files_, directory_.path(), sites);
    }

    test::TemporaryDirectory directory_;
    std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

TEST_F(RunSummaryTest, sites_that_trained_must_hold_equal_parameters) {
    write("a", 20, "x");
    write("b", 20, "x");
    EXPECT_TRUE(summary({"a", "b"}).hashes_equal);
    write("b", 20, "y");
    EXPECT_FALSE(summary({"a", "b"}).hashes_equal);
}

TEST_F(RunSummaryTest, a_site_that_came_back_when_the_run_was_over_does_not_make_it_fail) {
    write("a", 0, "first");
    write("b", 20, "x");
    write("c", 20, "x");
    const RunSummary told = summary({"a", "b", "c"});
    EXPECT_TRUE(told.hashes_equal);
    EXPECT_TRUE(told.trained);
    EXPECT_EQ(nlohmann::json::parse(told.json)["parameters_blake2b"], "x");
    EXPECT_NE(told.table.find("took no step"), std::string::npos) << told.table;
}

TEST_F(RunSummaryTest, tokens_are_the_runs_and_a_sites_its_own) {
    files_->create_directories(directory_.path() / "summaries");
    const auto tokens = [&](const std::string& site, std::int64_t own, std::int64_t all) {
        files_->write_text_atomically(
            directory_.path() / "summaries" / (site + ".json"),
            nlohmann::json{{"steps", 20}, {"parameters_blake2b", "x"}, {"tokens", own}, {"run_tokens", all}}
                .dump());
    };
    tokens("a", 100, 250);
    tokens("b", 50, 150);  // it came late
    const auto json = nlohmann::json::parse(summary({"a", "b"}).json);
    EXPECT_EQ(json["tokens"], 250);
    EXPECT_EQ(json["sites"]["a"]["tokens"], 100);
    EXPECT_EQ(json["sites"]["b"]["tokens"], 50);
}

TEST_F(RunSummaryTest, a_start_in_which_nobody_trained_says_so) {
    write("a", 0, "first");
    EXPECT_FALSE(summary({"a", "b"}).trained);
}

}  // namespace
}  // namespace atl::cli
