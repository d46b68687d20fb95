// How predictable bytes are from nothing, and from the byte before: what a trained model is measured against.
//
// Units: nats per byte; the end-of-text after a document counts as one byte, so figures compare with a model's
// loss per token. A document is end-of-text, its bytes, and end-of-text as its last prediction.
// Cost: one addition per byte; 0.5 MB. Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/tokenizer.h"

namespace atl {

class ByteStatistics {
  public:
    ByteStatistics();
    // One document as append_document makes it.
    void add_document(std::span<const Token> tokens);

    std::int64_t documents() const { return documents_; }
    std::int64_t bytes() const { return predictions_ - documents_; }
    std::int64_t predictions() const { return predictions_; }  // bytes and ends of documents

    // Entropies of this text under its own counts: 0 without text.
    double unigram_entropy() const;
    double bigram_entropy() const;
    // Mean surprise at this text of a bigram model counted on `other`. Bigrams unseen there get what one extra
    // prediction, spread like its bytes, leaves them (each byte counted once more).
    double bigram_cross_entropy(const ByteStatistics& other) const;

  private:
    static constexpr std::size_t kSymbols = kByteVocabulary;
    std::int64_t pair_count(std::size_t before, std::size_t after) const {
        return pairs_[before * kSymbols + after];
    }

    std::int64_t documents_ = 0;
    std::int64_t predictions_ = 0;
    std::array<std::int64_t, kSymbols> predicted_{};  // how often each symbol was to be predicted
    std::array<std::int64_t, kSymbols> contexts_{};   // how often each symbol stood before one
    std::vector<std::int64_t> pairs_;                 // [before, after]
};

}  // namespace atl
