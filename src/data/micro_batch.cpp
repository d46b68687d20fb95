#include "data/micro_batch.h"

#include <algorithm>

#include "core/check.h"
#include "data/batch_filler.h"

namespace atl {

MicroBatch::MicroBatch(std::int64_t token_count)
    : tokens(static_cast<std::size_t>(token_count)),
      targets(tokens.size()),
      positions(tokens.size()),
      starts(tokens.size() + 1) {}

BatchReader::BatchReader(const Corpus& corpus, BatchShape shape, std::uint64_t seed)
    : corpus_(corpus), shape_(shape), order_(corpus.document_begins(), seed, shape.block_tokens()) {
    ATOLL_CHECK_LT(std::int64_t{0}, shape.micro_batch);
    ATOLL_CHECK_EQ(shape.sequences_per_step % shape.micro_batch, 0);
}

void BatchReader::read(std::int64_t block, std::int64_t micro_batch, MicroBatchView batch) {
    ATOLL_CHECK_LT(micro_batch, shape_.micro_batches());
    const std::int64_t length = shape_.micro_batch_tokens();
    const std::int64_t begin = block * shape_.block_tokens() + micro_batch * length;
    BatchFiller filler(corpus_, batch, length);
    for (const DocumentPiece& piece : order_.pieces(begin, begin + length)) {
        // A sequence's end cuts a piece in two: attention and positions begin anew.
        for (std::int64_t done = 0; done < piece.tokens;) {
            const std::int64_t left_in_sequence = shape_.context - filler.filled() % shape_.context;
            const std::int64_t tokens = std::min(piece.tokens - done, left_in_sequence);
            const bool ends = piece.ends_document && done + tokens == piece.tokens;
            filler.add_piece(piece.corpus_offset + done, tokens, ends);
            done += tokens;
        }
    }
    filler.finish();
}

}  // namespace atl
