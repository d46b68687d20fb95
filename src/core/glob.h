// Files by pattern, as a shell expands it: *, ? and [].
//
// Errors: none; an unreadable directory matches nothing. Cost: one listing per directory looked into.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace atl {

// What exists and matches, sorted by bytes; a pattern without wildcards matches itself.
std::vector<std::filesystem::path> glob(const std::string& pattern);

}  // namespace atl
