#include "core/output_path.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace atl {
namespace {

// The system's reason why a file with a name that begins so can't be made; empty if it can.
std::string why_no_file(std::string name) {
    name += ".XXXXXX";  // mkstemp replaces the six letters
    const int descriptor = ::mkstemp(name.data());
    if (descriptor < 0) return std::strerror(errno);
    ::close(descriptor);
    ::unlink(name.c_str());
    return "";
}

}  // namespace

std::string why_unwritable(const std::filesystem::path& file) {
    if (file.empty()) return "must name a file";
    std::error_code error;
    const auto status = std::filesystem::status(file, error);
    if (std::filesystem::is_directory(status) || !file.has_filename())
        return fmt::format("{} is a folder, no file", file.string());
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        return fmt::format("{} is no regular file", file.string());
    if (const auto folder = file.parent_path(); !folder.empty() && !std::filesystem::exists(folder, error))
        return fmt::format("{}: there is no folder {}", file.string(), folder.string());
    const std::string why = why_no_file(file.string());
    return why.empty() ? "" : fmt::format("{} can't be written: {}", file.string(), why);
}

std::string why_unwritable_folder(const std::filesystem::path& folder) {
    if (folder.empty()) return "must name a folder";
    for (auto path = std::filesystem::absolute(folder);; path = path.parent_path()) {
        std::error_code error;
        const auto status = std::filesystem::status(path, error);
        if (std::filesystem::is_directory(status)) {
            const std::string why = why_no_file((path / "trial").string());
            return why.empty() ? ""
                               : fmt::format("{}: nothing can be written in {}: {}", folder.string(),
                                             path.string(), why);
        }
        if (status.type() != std::filesystem::file_type::not_found)
            return fmt::format("{}: {} is no folder", folder.string(), path.string());
    }
}

}  // namespace atl
