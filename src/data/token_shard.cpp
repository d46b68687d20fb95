#include "data/token_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little-endian");

constexpr std::size_t kHeaderWords = kShardHeaderBytes / 4;
using Header = std::array<std::int32_t, kHeaderWords>;  // magic, version, tokens, then zeros

[[noreturn]] void refuse(const std::filesystem::path& path, std::int64_t byte, const std::string& found) {
    throw CorruptDataError(fmt::format("[data] {}, byte {}: {}", path.string(), byte, found));
}

}  // namespace

TokenShard::TokenShard(const FileSystem& files, const std::filesystem::path& path)
    : path_(path), file_(files.open(path)) {
    const std::int64_t size = file_->size_bytes();
    if (size < kShardHeaderBytes)
        refuse(path, size,
               fmt::format("the file ends in its header; {} bytes were expected", kShardHeaderBytes));
    Header header{};
    file_->read(0, std::as_writable_bytes(std::span(header)));
    if (header[0] != kShardMagic)
        refuse(
            path, 0,
            fmt::format("found {}, expected the magic number {} of a token shard", header[0], kShardMagic));
    if (header[1] != kShardVersion)
        refuse(path, 4, fmt::format("found version {}, expected {}", header[1], kShardVersion));
    if (header[2] < 0) refuse(path, 8, fmt::format("found {} tokens, expected a count", header[2]));
    token_count_ = header[2];
    const std::int64_t expected = kShardHeaderBytes + 2 * token_count_;
    if (size != expected)
        refuse(path, std::min(size, expected),
               fmt::format("the file has {} bytes, {} were expected for {} tokens", size, expected,
                           token_count_));
}

void TokenShard::read(std::int64_t offset, std::span<Token> tokens) const {
    ATOLL_CHECK_LE(offset + static_cast<std::int64_t>(tokens.size()), token_count_, "{}", path_.string());
    file_->read(kShardHeaderBytes + 2 * offset, std::as_writable_bytes(tokens));
}

void write_token_shard(FileSystem& files, const std::filesystem::path& path, std::span<const Token> tokens) {
    ATOLL_CHECK_LE(tokens.size(), std::size_t{0x7fffffff});
    Header header{};
    header[0] = kShardMagic;
    header[1] = kShardVersion;
    header[2] = static_cast<std::int32_t>(tokens.size());
    std::vector<std::byte> bytes(kShardHeaderBytes + tokens.size_bytes());
    std::memcpy(bytes.data(), header.data(), kShardHeaderBytes);
    if (!tokens.empty()) std::memcpy(bytes.data() + kShardHeaderBytes, tokens.data(), tokens.size_bytes());
    files.write_file_atomically(path, bytes);
}

TokenShardWriter::TokenShardWriter(FileSystem& files, std::filesystem::path directory, std::string name,
                                   std::int64_t shard_tokens)
    : files_(files),
      directory_(std::move(directory)),
      name_(std::move(name)),
      shard_tokens_(static_cast<std::size_t>(shard_tokens)) {
    ATOLL_CHECK_LT(std::int64_t{0}, shard_tokens);
}

void TokenShardWriter::append(std::span<const Token> tokens) {
    token_count_ += static_cast<std::int64_t>(tokens.size());
    while (!tokens.empty()) {
        const auto fits = std::min(tokens.size(), shard_tokens_ - pending_.size());
        pending_.insert(pending_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(fits));
        tokens = tokens.subspan(fits);
        if (pending_.size() == shard_tokens_) write_shard();
    }
}

void TokenShardWriter::finish() {
    if (!pending_.empty()) write_shard();
}

void TokenShardWriter::write_shard() {
    paths_.push_back(directory_ / fmt::format("{}_{:06}.bin", name_, paths_.size()));
    write_token_shard(files_, paths_.back(), pending_);
    pending_.clear();
}

}  // namespace atl
