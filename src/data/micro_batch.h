// The arrays a program reads: token ids, next-token targets, positions and document boundaries.
//
// A micro-batch is `micro_batch` sequences of `context` tokens, concatenated: T tokens. A piece is the part
// of one document in one sequence; attention never leaves it and positions restart with it. The target of a
// document's last token is end-of-text, whatever document follows; every other target is the next token.
//
// Shapes: tokens, targets, positions [T]; starts [T+1]: first token of each piece, then T until the end. All
// i32; a target < 0 has no loss. Threads: one reader per thread. Errors: those of Corpus::read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/corpus.h"
#include "data/sequence_order.h"

namespace atl {

struct BatchShape {
    std::int64_t context = 0;             // tokens
    std::int64_t sequences_per_step = 0;  // of one site
    std::int64_t micro_batch = 0;         // sequences; divides sequences_per_step

    std::int64_t block_tokens() const { return context * sequences_per_step; }
    std::int64_t micro_batch_tokens() const { return context * micro_batch; }
    std::int64_t micro_batches() const { return sequences_per_step / micro_batch; }
};

// Where a micro-batch is written; memory of the caller.
struct MicroBatchView {
    std::span<std::int32_t> tokens;
    std::span<std::int32_t> targets;
    std::span<std::int32_t> positions;
    std::span<std::int32_t> starts;
};

// A micro-batch with memory of its own.
struct MicroBatch {
    explicit MicroBatch(std::int64_t token_count);
    MicroBatchView view() { return {tokens, targets, positions, starts}; }
    bool operator==(const MicroBatch&) const = default;

    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> starts;
};

// Training batches: micro-batch i of a block is its sequences [i·micro_batch, (i+1)·micro_batch).
class BatchReader {
  public:
    BatchReader(const Corpus& corpus, BatchShape shape, std::uint64_t seed);  // corpus must outlive it

    const BatchShape& shape() const { return shape_; }
    const SequenceOrder& order() const { return order_; }
    void read(std::int64_t block, std::int64_t micro_batch, MicroBatchView batch);

  private:
    const Corpus& corpus_;
    BatchShape shape_;
    SequenceOrder order_;
};

}  // namespace atl
