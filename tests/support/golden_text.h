// Texts that must not change unnoticed, kept in tests/golden. ATOLL_WRITE_FIXTURE=1 writes the file anew.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/file_system.h"

namespace atl::test {

// `name` with its folder, below tests/golden.
inline void expect_golden_text(const std::string& name, const std::string& text) {
    const char* root = std::getenv("ATOLL_SOURCE_DIR");
    ASSERT_NE(root, nullptr) << "ctest sets it to the top of the checkout";
    const auto path = std::filesystem::path(root) / "tests/golden" / name;
    const auto files = make_system_file_system();
    if (std::getenv("ATOLL_WRITE_FIXTURE") != nullptr) {
        files->create_directories(path.parent_path());
        files->write_text_atomically(path, text);
    }
    EXPECT_EQ(files->read_text(path), text) << "if this is meant: ATOLL_WRITE_FIXTURE=1";
}

}  // namespace atl::test
