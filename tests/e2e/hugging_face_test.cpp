// A model written by `transformers` is imported and evaluated: the loss is the one `transformers` computed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "support/atoll_commands.h"

namespace atl::test {
namespace {

class GoldenModel : public testing::TestWithParam<const char*> {
  protected:
    AtollCommands atoll_;
};

TEST_P(GoldenModel, has_the_loss_that_transformers_computed) {
    const std::filesystem::path golden =
        std::filesystem::path(std::getenv("ATOLL_SOURCE_DIR")) / "tests" / "golden" / GetParam();
    const auto expected = nlohmann::json::parse(std::ifstream(golden / "losses.json"));
    const auto imported = atoll_.run("import " + golden.string() + " --out checkpoint");
    EXPECT_EQ(imported.code, 0) << imported.errors;
    const auto got = atoll_.json("eval checkpoint --json --data " + (golden / "tokens.bin").string());
    const double loss = expected.at("loss");
    EXPECT_EQ(got.at("tokens"), expected.at("token_losses").size());
    EXPECT_EQ(got.at("step"), 0);
    EXPECT_NE(got.at("checkpoint").get<std::string>().find("site_imported"), std::string::npos);
    EXPECT_NEAR(got.at("loss").get<double>(), loss, 1e-5 * loss);
}

INSTANTIATE_TEST_SUITE_P(, GoldenModel, testing::Values("hf_llama_gqa", "hf_llama_tied", "hf_gpt2"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace atl::test
