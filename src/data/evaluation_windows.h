// Evaluation: consecutive windows of `context` tokens over a corpus in its own order. Every token but the
// corpus's first is predicted exactly once, the last partial window included (its unused targets are −1).
//
// `documents` says whether a window's documents see each other: apart, as in training, or joined, as a plain
// model reads a plain run of tokens. Shapes as in micro_batch.h. Threads: any. Errors: those of Corpus::read.
#pragma once

#include "data/micro_batch.h"

namespace atl {

enum class WindowDocuments : std::uint8_t { apart, joined };

struct EvaluationShape {
    std::int64_t context = 0;      // tokens
    std::int64_t micro_batch = 0;  // windows read at once
    WindowDocuments documents = WindowDocuments::apart;
};

class EvaluationWindows {
  public:
    EvaluationWindows(const Corpus& corpus, EvaluationShape shape);  // corpus must outlive it

    std::int64_t window_count() const;  // 0 when there is nothing to predict
    // Windows [first, first + micro_batch); windows from `limit` on are empty: token 0, targets −1.
    // Returns how many targets have a loss.
    std::int64_t read(std::int64_t first, std::int64_t limit, MicroBatchView batch) const;

  private:
    // Where tokens after `offset` stop being visible from it.
    std::int64_t next_document(std::int64_t offset) const;

    const Corpus& corpus_;
    EvaluationShape shape_;
};

}  // namespace atl
