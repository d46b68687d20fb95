#include "data/sequence_order.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/random.h"

namespace atl {
namespace {

// Apart from streams named by text, whose numbers are hashes; epochs count up from here.
constexpr std::uint64_t kDocumentOrderStream = 0xd0c0'0000'0000'0000;

}  // namespace

EpochOrder::EpochOrder(std::span<const std::int64_t> document_begins, std::uint64_t seed, std::int64_t epoch)
    : document_begins_(document_begins) {
    ATOLL_CHECK_LT(std::size_t{1}, document_begins.size());
    const std::size_t documents = document_begins.size() - 1;
    ATOLL_CHECK_LT(documents, std::size_t{0x7fffffff});
    const RandomPermutation permutation(seed, kDocumentOrderStream + static_cast<std::uint64_t>(epoch),
                                        documents);
    documents_.resize(documents);
    begins_.resize(documents + 1);
    for (std::size_t position = 0; position < documents; ++position) {
        const auto document = static_cast<std::size_t>(permutation(position));
        documents_[position] = static_cast<std::int32_t>(document);
        begins_[position + 1] = begins_[position] + document_begins[document + 1] - document_begins[document];
    }
}

void EpochOrder::append_pieces(std::int64_t begin, std::int64_t end,
                               std::vector<DocumentPiece>& pieces) const {
    ATOLL_CHECK_LE(std::int64_t{0}, begin);
    ATOLL_CHECK_LE(end, token_count());
    auto position =
        static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin()) -
        1;
    while (begin < end) {
        const std::int64_t document_end = begins_[position + 1];
        const std::int64_t piece_end = std::min(document_end, end);
        const std::int64_t into_document = begin - begins_[position];
        const auto document = static_cast<std::size_t>(documents_[position]);
        pieces.push_back({.corpus_offset = document_begins_[document] + into_document,
                          .tokens = piece_end - begin,
                          .ends_document = piece_end == document_end});
        begin = piece_end;
        ++position;
    }
}

SequenceOrder::SequenceOrder(std::span<const std::int64_t> document_begins, std::uint64_t seed,
                             std::int64_t block_tokens)
    : document_begins_(document_begins),
      seed_(seed),
      block_tokens_(block_tokens),
      epoch_tokens_(document_begins.back() - document_begins.front()) {
    ATOLL_CHECK_LT(std::int64_t{0}, block_tokens);
    ATOLL_CHECK_LT(std::int64_t{0}, epoch_tokens_);
}

std::int64_t SequenceOrder::blocks_per_epoch() const {
    return std::max<std::int64_t>(epoch_tokens_ / block_tokens_, 1);
}

std::vector<DocumentPiece> SequenceOrder::pieces(std::int64_t begin, std::int64_t end) {
    std::vector<DocumentPiece> pieces;
    while (begin < end) {
        const std::int64_t epoch = begin / epoch_tokens_;
        const std::int64_t epoch_begin = epoch * epoch_tokens_;
        const std::int64_t here = std::min(end, epoch_begin + epoch_tokens_);
        epoch_order(epoch).append_pieces(begin - epoch_begin, here - epoch_begin, pieces);
        begin = here;
    }
    return pieces;
}

const EpochOrder& SequenceOrder::epoch_order(std::int64_t epoch) {
    if (known_[0].epoch != epoch) std::swap(known_[0], known_[1]);
    if (known_[0].epoch != epoch)
        known_[0] = {epoch, std::make_unique<EpochOrder>(document_begins_, seed_, epoch)};
    return *known_[0].order;
}

}  // namespace atl
