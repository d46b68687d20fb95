// Ranks of an island as processes of a helper program, in a fresh meeting directory.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "core/child_process.h"
#include "support/temporary_directory.h"

namespace atl::test {

inline constexpr Milliseconds kLimit{60'000};  // no healthy test comes near it

class IslandProcesses {
  public:
    // Runs PROGRAM MEETING_DIRECTORY RANK SIZE ARGUMENTS…
    ChildProcess& start_rank(const std::string& program, std::int32_t rank, std::int32_t size,
                             const std::vector<std::string>& arguments) {
        ChildOptions options{.command = {(program_directory() / program).string(), meeting().string(),
                                         std::to_string(rank), std::to_string(size)},
                             .output = output_file(rank)};
        options.command.insert(options.command.end(), arguments.begin(), arguments.end());
        processes_.push_back(std::make_unique<ChildProcess>(options));
        return *processes_.back();
    }
    std::filesystem::path meeting() const { return directory_.path() / "meeting"; }
    std::string output(std::int32_t rank) const {
        std::ifstream file(output_file(rank));
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }
    void expect_all_end_well() {
        for (auto& process : processes_) {
            const auto status = process->wait_for(kLimit);
            ASSERT_TRUE(status && status->ok())
                << (status ? to_string(*status) : "still running") << output(0);
        }
    }
    // Waits for a file that a member writes when it has come to a certain point.
    void await(const std::string& name) const {
        const auto path = meeting() / name;
        for (int attempt = 0; attempt < 6'000 && !std::filesystem::exists(path); ++attempt) {
            std::this_thread::sleep_for(Milliseconds(10));
        }
        ASSERT_TRUE(std::filesystem::exists(path)) << name << ": " << output(0) << output(1);
    }

  private:
    std::filesystem::path output_file(std::int32_t rank) const {
        return directory_.path() / ("rank_" + std::to_string(rank) + ".txt");
    }

    TemporaryDirectory directory_;
    std::vector<std::unique_ptr<ChildProcess>> processes_;
};

}  // namespace atl::test
