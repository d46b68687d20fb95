// Every wrong_configs/NAME.toml is refused with exactly the report in NAME.txt beside it: all problems at
// once, each with its place, its value, the rule, and the nearest name. ATOLL_WRITE_FIXTURE=1 writes reports.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "config/load_config.h"
#include "core/error.h"
#include "core/glob.h"

namespace atl {
namespace {

std::string report_of(const FileSystem& files, const std::filesystem::path& config) {
    try {
        load_config(files, {.file = config, .overrides = {}});
    } catch (const UserError& error) {
        return std::string(error.what()) + "\n";
    }
    return "accepted\n";
}

TEST(WrongConfigs, are_each_refused_with_the_report_that_stands_beside_them) {
    const char* source = std::getenv("ATOLL_SOURCE_DIR");
    ASSERT_NE(source, nullptr);
    std::filesystem::current_path(source);
    const auto files = make_system_file_system();
    const auto configs = glob("tests/golden/wrong_configs/*.toml");
    ASSERT_GE(configs.size(), 30U);
    for (const std::filesystem::path& config : configs) {
        std::filesystem::path expected = config;
        expected.replace_extension(".txt");
        const std::string report = report_of(*files, config);
        if (std::getenv("ATOLL_WRITE_FIXTURE") != nullptr) files->write_text_atomically(expected, report);
        EXPECT_EQ(report, files->read_text(expected)) << config;
        EXPECT_NE(report, "accepted\n") << config;
    }
}

}  // namespace
}  // namespace atl
