// Small real runs by every outer method and by Muon inside: sites agree and learn, and a stop changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/training_run.h"

namespace atl::test {
namespace {

class OuterMethods : public testing::Test {
  protected:
    TrainingRuns runs_;
};

TEST_F(OuterMethods, two_sites_agree_and_learn_with_every_outer_method) {
    for (const char* method : {"average", "adam", "sparse_loco", "delayed", "eager"}) {
        const auto config = runs_.write_config({"east", "west"}, {{"outer.method", fmt::format("\"{}\"", method)}});
        const auto outcome = runs_.run(method, config);
        ASSERT_TRUE(outcome.status.ok()) << outcome.log;
        const auto& sites = outcome.summary.at("sites");
        EXPECT_EQ(sites.at("east").at("parameters_blake2b"), sites.at("west").at("parameters_blake2b")) << method;
        const auto losses = runs_.losses(method, "east");
        EXPECT_LT(losses.at(12), losses.at(1)) << method;
    }
}

TEST_F(OuterMethods, muon_inside_stopped_and_resumed_equals_a_run_that_never_stopped) {
    const auto config = runs_.write_config({"east", "west"}, {{"optim.kind", "\"muon\""}});
    const auto whole = runs_.run("whole", config);
    ASSERT_TRUE(whole.status.ok()) << whole.log;
    const auto& sites = whole.summary.at("sites");
    EXPECT_EQ(sites.at("east").at("parameters_blake2b"), sites.at("west").at("parameters_blake2b"));
    const auto losses = runs_.losses("whole", "east");
    EXPECT_LT(losses.at(12), losses.at(1));
    for (const char* stop : {"4", "6"}) {
        const auto part = runs_.run("parts", config, {"--stop-at", stop});
        ASSERT_TRUE(part.status.ok()) << part.log;
    }
    const auto last = runs_.run("parts", config);
    ASSERT_TRUE(last.status.ok()) << last.log;
    EXPECT_EQ(last.hash(), whole.hash());
    runs_.expect_same_losses("whole", "parts", "west");
}

// Stops where a round ends and its contribution is kept (4), beside whose steps it is exchanged (6), and in the last
// round (10), which waits: a codec with residuals, and a method whose sites begin rounds apart.
TEST_F(OuterMethods, stopped_a_round_late_and_resumed_equals_one_that_never_stopped) {
    for (const char* method : {"eager", "delayed"}) {
        const auto config = runs_.write_config({"east", "west"}, {{"outer.method", fmt::format("\"{}\"", method)},
                                                                  {"outer.warmup_rounds", "0"},
                                                                  {"run.name", fmt::format("\"{}\"", method)},
                                                                  {"exchange.codec", "\"top_k\""}});
        const std::string parts = std::string(method) + "-parts";
        const auto whole = runs_.run(method, config);
        ASSERT_TRUE(whole.status.ok()) << whole.log;
        for (const char* stop : {"4", "6", "10"}) {
            const auto part = runs_.run(parts, config, {"--stop-at", stop});
            ASSERT_TRUE(part.status.ok()) << part.log;
            EXPECT_EQ(part.summary.at("steps"), std::stoi(stop)) << part.log;
        }
        const auto last = runs_.run(parts, config);
        ASSERT_TRUE(last.status.ok()) << last.log;
        EXPECT_EQ(last.hash(), whole.hash()) << method;
        runs_.expect_same_losses(method, parts, "east");
        runs_.expect_same_losses(method, parts, "west");
    }
}

}  // namespace
}  // namespace atl::test
