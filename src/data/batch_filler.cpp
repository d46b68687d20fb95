#include "data/batch_filler.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace atl {
namespace {

std::span<std::int32_t> part(std::span<std::int32_t> values, std::int64_t begin, std::int64_t count) {
    return values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

}  // namespace

BatchFiller::BatchFiller(const Corpus& corpus, MicroBatchView view, std::int64_t token_count)
    : corpus_(corpus), view_(view), token_count_(token_count) {
    const auto count = static_cast<std::size_t>(token_count);
    ATOLL_CHECK_EQ(view.tokens.size(), count);
    ATOLL_CHECK_EQ(view.targets.size(), count);
    ATOLL_CHECK_EQ(view.positions.size(), count);
    ATOLL_CHECK_EQ(view.starts.size(), count + 1);
}

void BatchFiller::add_piece(std::int64_t offset, std::int64_t tokens, bool ends_document) {
    buffer_.resize(static_cast<std::size_t>(tokens) + (ends_document ? 0 : 1));
    corpus_.read(offset, buffer_);
    if (ends_document) buffer_.push_back(corpus_.end_of_text());
    std::copy(buffer_.begin(), buffer_.end() - 1, part(view_.tokens, filled_, tokens).begin());
    std::copy(buffer_.begin() + 1, buffer_.end(), part(view_.targets, filled_, tokens).begin());
    start_piece(tokens);
}

void BatchFiller::add_unused(std::int64_t tokens) {
    std::ranges::fill(part(view_.tokens, filled_, tokens), 0);
    std::ranges::fill(part(view_.targets, filled_, tokens), -1);
    start_piece(tokens);
}

void BatchFiller::start_piece(std::int64_t tokens) {
    ATOLL_CHECK_LT(std::int64_t{0}, tokens);
    const auto positions = part(view_.positions, filled_, tokens);
    std::iota(positions.begin(), positions.end(), 0);
    view_.starts[pieces_++] = static_cast<std::int32_t>(filled_);
    filled_ += tokens;
}

void BatchFiller::finish() {
    ATOLL_CHECK_EQ(filled_, token_count_);
    std::ranges::fill(view_.starts.subspan(pieces_), static_cast<std::int32_t>(token_count_));
}

}  // namespace atl
