// Documents of text from files and folders: a `.txt`, `.md` or `.rst` file is one document, a `.jsonl` file one
// per line (the text in `field`), each also as `.gz` or `.zst`.
//
// Folders are read recursively, their files in the order of their paths; links to folders aren't followed.
// Empty documents are left out. Errors: UserError for inputs that are missing, of another kind, or without the
// field; CorruptDataError for broken JSON or compression. Cost: one pass, one document in memory.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_system.h"

namespace atl {

// The files that inputs stand for, folders expanded; other kinds of files in folders are left out.
std::vector<std::filesystem::path> list_text_files(const std::vector<std::filesystem::path>& inputs);

using DocumentSink = std::function<void(std::string_view text)>;

void read_documents(const FileSystem& files, const std::filesystem::path& path, const std::string& field,
                    const DocumentSink& sink);

}  // namespace atl
