#include "core/temporary_directory.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace atl {

TemporaryDirectory::TemporaryDirectory(std::string_view purpose) {
    // mkdtemp replaces the six letters.
    std::string name =
        (std::filesystem::temp_directory_path() / fmt::format("atoll-{}-XXXXXX", purpose)).string();
    if (::mkdtemp(name.data()) == nullptr)
        throw StorageError(fmt::format("can't make a directory like {}: {}", name, std::strerror(errno)));
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace atl
