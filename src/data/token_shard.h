// Token shards: the `.bin` files of llm.c, read and written. FORMAT in README.md.
//
// Units: tokens; offsets count tokens after the header. Ownership: a reader holds one open file.
// Threads: read() from any thread. Errors: CorruptDataError names file, byte and what was expected there.
// Cost: one positioned read per call; the writer holds one shard in memory and replaces files atomically.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "data/tokenizer.h"

namespace atl {

inline constexpr std::int64_t kShardHeaderBytes = 1024;
inline constexpr std::int32_t kShardMagic = 20240520;
inline constexpr std::int32_t kShardVersion = 1;

class TokenShard {
  public:
    TokenShard(const FileSystem& files, const std::filesystem::path& path);

    const std::filesystem::path& path() const { return path_; }
    std::int64_t token_count() const { return token_count_; }
    void read(std::int64_t offset, std::span<Token> tokens) const;

  private:
    std::filesystem::path path_;
    std::unique_ptr<ReadableFile> file_;
    std::int64_t token_count_ = 0;
};

void write_token_shard(FileSystem& files, const std::filesystem::path& path, std::span<const Token> tokens);

// Writes DIR/NAME_000000.bin, DIR/NAME_000001.bin, …, each of at most shard_tokens tokens. Documents may
// continue in the next shard. finish() writes what is left; a writer dropped without it leaves only whole
// shards behind.
class TokenShardWriter {
  public:
    TokenShardWriter(FileSystem& files, std::filesystem::path directory, std::string name,
                     std::int64_t shard_tokens);
    void append(std::span<const Token> tokens);
    void finish();
    const std::vector<std::filesystem::path>& paths() const { return paths_; }
    std::int64_t token_count() const { return token_count_; }

  private:
    void write_shard();

    FileSystem& files_;
    std::filesystem::path directory_;
    std::string name_;
    std::size_t shard_tokens_;
    std::vector<Token> pending_;
    std::vector<std::filesystem::path> paths_;
    std::int64_t token_count_ = 0;
};

}  // namespace atl
