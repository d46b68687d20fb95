// Files by pattern, as a shell expands it: *, ? and [].
//
// Errors: none; an unreadable directory matches nothing. Cost: one listing per directory looked into.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace atl {

// What exists and matches, sorted by bytes. The path of something that exists matches itself alone, whatever is in its name.
std::vector<std::filesystem::path> glob(const std::string& pattern);

}  // namespace atl
