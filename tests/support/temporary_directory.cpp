#include "support/temporary_directory.h"

#include <cstdlib>

#include "core/check.h"

namespace atl::test {

TemporaryDirectory::TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "atoll-test-XXXXXX").string();
    ATOLL_CHECK(mkdtemp(name.data()) != nullptr, "{}", name);
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace atl::test
