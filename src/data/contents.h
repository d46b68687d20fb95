// What files of tokens hold, in a few words: enough to tell that a run would go on with others.
//
// Of each file in order its size, and XXH3-128 over that and its first and last 64 KiB; paths don't matter. Cost: 128 KiB
// a file. Threads: any. Errors: UserError when a pattern matches nothing.
#pragma once

#include <string>
#include <vector>

#include "core/file_system.h"

namespace atl {

// "2 files, 1234 bytes, HASH". Patterns as Corpus has them.
std::string token_contents(const FileSystem& files, const std::vector<std::string>& patterns);

}  // namespace atl
