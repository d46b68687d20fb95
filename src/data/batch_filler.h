// Writes the arrays of one micro-batch piece by piece, from the left.
#pragma once

#include "data/micro_batch.h"

namespace atl {

class BatchFiller {
  public:
    // Spans of `view` must hold `token_count` tokens and token_count + 1 starts.
    BatchFiller(const Corpus& corpus, MicroBatchView view, std::int64_t token_count);

    std::int64_t filled() const { return filled_; }  // tokens
    // Corpus tokens [offset, offset + tokens); the last one's target is the next corpus token, or end-of-text
    // where the piece ends its document.
    void add_piece(std::int64_t offset, std::int64_t tokens, bool ends_document);
    // Tokens without a loss, a piece of their own.
    void add_unused(std::int64_t tokens);
    // All tokens must be filled; writes the rest of starts.
    void finish();

  private:
    void start_piece(std::int64_t tokens);

    const Corpus& corpus_;
    MicroBatchView view_;
    std::int64_t token_count_;
    std::int64_t filled_ = 0;
    std::size_t pieces_ = 0;
    std::vector<Token> buffer_;
};

}  // namespace atl
