// The bytes of a text file, plain or compressed: `.gz` (RFC 1952) and `.zst` (RFC 8878) by their name.
//
// Cost: one pass, 1 MiB in memory. Errors: StorageError for the file system; CorruptDataError, naming file and
// byte of the compressed file, for what can't be decompressed or ends too early.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/file_system.h"

namespace atl {

using TextSink = std::function<void(std::string_view)>;

// Hands out the content from beginning to end, in runs of any length.
void read_text_file(const FileSystem& files, const std::filesystem::path& path, const TextSink& sink);

}  // namespace atl
