#include "core/temporary_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/child_process.h"

namespace atl {
namespace {

TEST(TemporaryDirectory, is_there_while_the_object_lives_and_gone_with_all_in_it_afterwards) {
    std::filesystem::path path;
    {
        const TemporaryDirectory directory("test");
        path = directory.path();
        std::ofstream(path / "file") << "x";
        EXPECT_TRUE(std::filesystem::exists(path / "file"));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryDirectory, what_a_killed_process_left_goes_with_the_next_one_and_what_living_ones_have_stays) {
    const TemporaryDirectory mine("test");
    const std::string own_pid = std::to_string(::getpid());
    ChildProcess ended({.command = {"true"}});
    const std::string dead_pid = std::to_string(ended.pid());
    ASSERT_TRUE(ended.wait_for(Milliseconds(10'000)).has_value());
    std::string name = mine.path().filename();
    name.replace(name.find("-" + own_pid + "-"), own_pid.size() + 2, "-" + dead_pid + "-");
    const auto abandoned = mine.path().parent_path() / name;
    std::filesystem::create_directory(abandoned);
    std::ofstream(abandoned / "file") << "x";

    const TemporaryDirectory next("test");
    EXPECT_FALSE(std::filesystem::exists(abandoned));
    EXPECT_TRUE(std::filesystem::exists(mine.path()));
    EXPECT_TRUE(std::filesystem::exists(next.path()));
}

}  // namespace
}  // namespace atl
