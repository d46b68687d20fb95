#include "data/corpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "core/glob.h"

namespace atl {
namespace {

constexpr std::int64_t kScanTokens = 1 << 20;  // read at once when looking for documents

}  // namespace

Corpus::Corpus(const FileSystem& files, const std::vector<std::string>& patterns, CorpusOptions options)
    : options_(options), shard_begins_{0} {
    if (options.vocab > kLargestVocabulary)
        throw UserError(
            fmt::format("[data] a vocabulary of {} tokens doesn't fit token shards, which hold 16 bits: "
                        "at most {}",
                        options.vocab, kLargestVocabulary));
    for (const std::string& pattern : patterns) {
        const auto paths = glob(pattern);
        if (paths.empty()) throw UserError(fmt::format("[data] {}: no such file", pattern));
        for (const std::filesystem::path& path : paths) {
            const TokenShard& shard = shards_.emplace_back(files, path);
            find_documents(shard, shard_begins_.back());
            shard_begins_.push_back(shard_begins_.back() + shard.token_count());
        }
    }
    if (token_count() == 0) throw UserError(fmt::format("[data] no tokens in {}", fmt::join(patterns, ", ")));
    document_begins_.push_back(token_count());
}

void Corpus::find_documents(const TokenShard& shard, std::int64_t shard_begin) {
    std::vector<Token> tokens;
    for (std::int64_t offset = 0; offset < shard.token_count(); offset += kScanTokens) {
        tokens.resize(static_cast<std::size_t>(std::min(kScanTokens, shard.token_count() - offset)));
        shard.read(offset, tokens);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            const std::int64_t place = offset + static_cast<std::int64_t>(i);
            if (tokens[i] == options_.end_of_text || shard_begin + place == 0)
                document_begins_.push_back(shard_begin + place);
            if (tokens[i] >= options_.vocab)
                throw UserError(
                    fmt::format("[data] {}, token {}: found {}, but model.vocab = {}: raise it, or choose "
                                "shards of this model's tokenizer",
                                shard.path().string(), place, tokens[i], options_.vocab));
        }
    }
}

void Corpus::read(std::int64_t offset, std::span<Token> tokens) const {
    ATOLL_CHECK_LE(std::int64_t{0}, offset);
    ATOLL_CHECK_LE(offset + static_cast<std::int64_t>(tokens.size()), token_count());
    auto next = std::upper_bound(shard_begins_.begin(), shard_begins_.end(), offset);
    while (!tokens.empty()) {
        const auto shard = static_cast<std::size_t>(next - shard_begins_.begin()) - 1;
        const auto here = std::min<std::int64_t>(*next - offset, static_cast<std::int64_t>(tokens.size()));
        shards_[shard].read(offset - shard_begins_[shard], tokens.first(static_cast<std::size_t>(here)));
        tokens = tokens.subspan(static_cast<std::size_t>(here));
        offset += here;
        ++next;
    }
}

}  // namespace atl
