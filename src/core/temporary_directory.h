// A directory of its own under the system's temporary one, removed with all in it at the end.
//
// A process that is killed leaves its own behind: the next directory for the same purpose removes those whose process is
// gone. Processes are known by their pid namespace and number. Errors: StorageError when it can't be made.
#pragma once

#include <filesystem>
#include <string_view>

namespace atl {

class TemporaryDirectory {
  public:
    explicit TemporaryDirectory(std::string_view purpose);  // part of its name
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace atl
