// Whether a file or folder that is to be written later can be: asked before the work whose result it will hold.
//
// Only a trial tells: permissions say little to root, and nothing about read-only and virtual file systems. A file with
// another name is made beside it and removed at once. Empty: it can; else why not, with the path.
#pragma once

#include <filesystem>
#include <string>

namespace atl {

// A file that is written anew, or over what is there.
std::string why_unwritable(const std::filesystem::path& file);
// A folder that is there, or is made with its parents.
std::string why_unwritable_folder(const std::filesystem::path& folder);

}  // namespace atl
