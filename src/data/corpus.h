// A corpus: shards in order, as one run of tokens cut into documents. A document begins at an end-of-text
// token and may go on in the next shard; tokens before the first end-of-text are a document too.
//
// Units: tokens; offsets count from the first token of the first shard. Threads: const calls from any thread.
// Errors: UserError when a pattern matches nothing or a token is not below the vocabulary; CorruptDataError
// for files that are not shards. Cost: opening reads every token once (about 1 GB/s) to find the documents,
// and keeps 8 bytes per document.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "data/token_shard.h"

namespace atl {

struct CorpusOptions {
    std::int64_t vocab = kByteVocabulary;  // rows of the model's embedding
    Token end_of_text = kByteEndOfText;
};

class Corpus {
  public:
    // Patterns are paths or globs, each expanded in sorted order.
    Corpus(const FileSystem& files, const std::vector<std::string>& patterns, CorpusOptions options = {});

    std::int64_t token_count() const { return shard_begins_.back(); }
    std::int64_t document_count() const { return static_cast<std::int64_t>(document_begins_.size()) - 1; }
    // First token of each document, then token_count().
    std::span<const std::int64_t> document_begins() const { return document_begins_; }
    Token end_of_text() const { return options_.end_of_text; }
    void read(std::int64_t offset, std::span<Token> tokens) const;

  private:
    void find_documents(const TokenShard& shard, std::int64_t shard_begin);

    CorpusOptions options_;
    std::vector<TokenShard> shards_;
    std::vector<std::int64_t> shard_begins_;  // one more than shards
    std::vector<std::int64_t> document_begins_;
};

}  // namespace atl
