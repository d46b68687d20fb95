// A model written by `transformers` is imported and evaluated: the loss is the one `transformers` computed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/child_process.h"
#include "core/file_system.h"
#include "support/temporary_directory.h"

namespace atl::test {
namespace {

class GoldenModel : public testing::TestWithParam<const char*> {
  protected:
    std::string run_atoll(const std::vector<std::string>& arguments) {
        const auto output = directory_.path() / "out";
        std::filesystem::remove(output);
        ChildOptions options{.command = {std::string(std::getenv("ATOLL_BINARY_DIR")) + "/atoll"},
                             .output = output};
        options.command.insert(options.command.end(), arguments.begin(), arguments.end());
        const auto status = ChildProcess(options).wait_for(Milliseconds(120'000));
        const std::string text = make_system_file_system()->read_text(output);
        EXPECT_TRUE(status && status->ok()) << text;
        return text;
    }

    TemporaryDirectory directory_;
};

TEST_P(GoldenModel, has_the_loss_that_transformers_computed) {
    const std::filesystem::path golden =
        std::filesystem::path(std::getenv("ATOLL_SOURCE_DIR")) / "tests" / "golden" / GetParam();
    const auto expected = nlohmann::json::parse(std::ifstream(golden / "losses.json"));
    const std::string checkpoint = (directory_.path() / "checkpoint").string();
    run_atoll({"import", golden.string(), "--out", checkpoint});
    const auto got = nlohmann::json::parse(
        run_atoll({"eval", checkpoint, "--data", (golden / "tokens.bin").string(), "--json"}));
    const double loss = expected.at("loss");
    EXPECT_EQ(got.at("tokens"), expected.at("token_losses").size());
    EXPECT_NEAR(got.at("loss").get<double>(), loss, 1e-5 * loss);
}

INSTANTIATE_TEST_SUITE_P(, GoldenModel, testing::Values("hf_llama_gqa", "hf_llama_tied", "hf_gpt2"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace atl::test
