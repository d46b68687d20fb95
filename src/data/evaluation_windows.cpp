#include "data/evaluation_windows.h"

#include <algorithm>

#include "core/check.h"
#include "data/batch_filler.h"

namespace atl {

EvaluationWindows::EvaluationWindows(const Corpus& corpus, EvaluationShape shape)
    : corpus_(corpus), shape_(shape) {
    ATOLL_CHECK_LT(std::int64_t{0}, shape.context);
    ATOLL_CHECK_LT(std::int64_t{0}, shape.micro_batch);
}

std::int64_t EvaluationWindows::window_count() const {
    return (corpus_.token_count() - 1 + shape_.context - 1) / shape_.context;
}

std::int64_t EvaluationWindows::read(std::int64_t first, std::int64_t limit, MicroBatchView batch) const {
    BatchFiller filler(corpus_, batch, shape_.context * shape_.micro_batch);
    std::int64_t predicted = 0;
    for (std::int64_t window = first; window < first + shape_.micro_batch; ++window) {
        const bool used = window < std::min(limit, window_count());
        const std::int64_t begin = window * shape_.context;
        const std::int64_t end = used ? std::min(begin + shape_.context, corpus_.token_count() - 1) : begin;
        for (std::int64_t piece = begin; piece < end;) {
            const std::int64_t piece_end = std::min(end, next_document(piece));
            // Every predicted token stands in the corpus, even the next document's end-of-text.
            filler.add_piece(piece, piece_end - piece, false);
            piece = piece_end;
        }
        predicted += end - begin;
        if (end < begin + shape_.context) filler.add_unused(begin + shape_.context - end);
    }
    filler.finish();
    return predicted;
}

std::int64_t EvaluationWindows::next_document(std::int64_t offset) const {
    if (shape_.documents == WindowDocuments::joined) return corpus_.token_count();
    const auto begins = corpus_.document_begins();
    return *std::upper_bound(begins.begin(), begins.end(), offset);
}

}  // namespace atl
