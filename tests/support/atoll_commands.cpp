#include "support/atoll_commands.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/child_process.h"

namespace atl::test {
namespace {

constexpr Milliseconds kPatience{120'000};

}  // namespace

CommandOutcome AtollCommands::run(const std::string& arguments) const {
    const std::string line = "cd " + directory_.path().string() + " && " + std::getenv("ATOLL_BINARY_DIR") + "/atoll " +
                             arguments + " >out 2>err";
    ChildProcess shell({.command = {"/bin/sh", "-c", line}, .environment = {}, .output = {}, .processors = {}});
    const auto status = shell.wait_for(kPatience);
    EXPECT_TRUE(status && status->signal == 0) << line;
    return {status ? status->code : -1, read("out"), read("err")};
}

nlohmann::json AtollCommands::json(const std::string& arguments) const {
    const CommandOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.errors;
    return nlohmann::json::parse(outcome.output, nullptr, false);
}

void AtollCommands::write(const std::string& name, const std::string& text) const {
    files_->write_text_atomically(path(name), text);
}

}  // namespace atl::test
