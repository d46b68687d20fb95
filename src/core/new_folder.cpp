#include "core/new_folder.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/output_path.h"

namespace atl {
namespace {

// Without links, dots and a slash at the end: its name can be lengthened.
std::filesystem::path plain(const std::filesystem::path& folder) {
    std::error_code error;
    const auto resolved = std::filesystem::weakly_canonical(std::filesystem::absolute(folder), error);
    return (error ? folder : resolved / "").parent_path();
}

}  // namespace

void require_folder_or_nothing(const std::filesystem::path& folder, std::string_view option) {
    if (const std::string why = why_unwritable_folder(folder); !why.empty())
        throw UserError(fmt::format("{}: {}", option, why));
}

NewFolder::NewFolder(FileSystem& files, const std::filesystem::path& folder, std::string_view option) : files_(files) {
    require_folder_or_nothing(folder, option);
    if (files.exists(folder) && !files.list(folder).empty())
        throw UserError(
            fmt::format("{}: has content already; remove it, or choose another {}", folder.string(), option));
    folder_ = plain(folder);
    partial_ = folder_;
    partial_ += ".partial";
    files_.remove_all(partial_);
    files_.create_directories(partial_);
}

NewFolder::~NewFolder() {
    try {
        if (files_.exists(partial_)) files_.remove_all(partial_);
    } catch (const std::exception&) {
        // The disk that failed the work may fail this too: what is left is taken for nothing by anybody.
    }
}

void NewFolder::commit() {
    files_.rename(partial_, folder_);
    files_.sync_directory(folder_.parent_path());
}

}  // namespace atl
