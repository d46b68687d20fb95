// A folder that a command makes whole or not at all, and never over what is there.
//
// Everything is written beside it, into NAME.partial, which commit() renames; without commit() that is removed.
// Errors: UserError unless the folder is absent or empty and its parents are folders; StorageError.
#pragma once

#include <filesystem>
#include <string_view>

#include "core/file_system.h"

namespace atl {

// UserError, naming the option it came from, when a file stands where a folder is or is to be, or nothing can be written
// there.
void require_folder_or_nothing(const std::filesystem::path& folder, std::string_view option);

class NewFolder {
  public:
    NewFolder(FileSystem& files, const std::filesystem::path& folder, std::string_view option = "--out");
    ~NewFolder();
    NewFolder(const NewFolder&) = delete;
    NewFolder& operator=(const NewFolder&) = delete;

    const std::filesystem::path& partial() const { return partial_; }  // exists; write here
    void commit();                                                     // durable when it returns

  private:
    FileSystem& files_;
    std::filesystem::path folder_;
    std::filesystem::path partial_;
};

}  // namespace atl
