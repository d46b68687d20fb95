#include "core/glob.h"

#include <glob.h>

#include <algorithm>

namespace atl {

std::vector<std::filesystem::path> glob(const std::string& pattern) {
    std::error_code error;
    if (std::filesystem::exists(pattern, error)) return {pattern};
    ::glob_t matches{};
    std::vector<std::filesystem::path> paths;
    if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches) == 0)
        paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    ::globfree(&matches);
    std::sort(paths.begin(), paths.end());
    return paths;
}

}  // namespace atl
