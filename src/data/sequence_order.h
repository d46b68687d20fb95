// The order in which a run reads its corpus, as a pure function of (documents, seed).
//
// The stream is every document once in the order of epoch 0, then every document once in the order of
// epoch 1, and so on without end. Block b is tokens [b·S, (b+1)·S) of it, S = sequences_per_step × context:
// what one site trains on in one inner step. Nothing is padded, lost or used twice in an epoch; the block in
// which an epoch ends goes on with the next one. Which site takes a block never matters to what is in it.
//
// Units: tokens. Threads: one at a time (the two epochs used last are remembered). Errors: none of its own.
// Cost: O(documents) time and 12 bytes each for an epoch met anew; then O(log documents + pieces) per block.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace atl {

// A run of tokens of one document.
struct DocumentPiece {
    std::int64_t corpus_offset = 0;
    std::int64_t tokens = 0;
    bool ends_document = false;  // its last token is the document's last
    bool operator==(const DocumentPiece&) const = default;
};

// One epoch's permutation of the documents, with prefix sums of their lengths.
class EpochOrder {
  public:
    // document_begins: one more than documents, as Corpus gives them; must outlive the order.
    EpochOrder(std::span<const std::int64_t> document_begins, std::uint64_t seed, std::int64_t epoch);

    std::int64_t token_count() const { return begins_.back(); }
    // Appends the pieces of stream tokens [begin, end) of this epoch.
    void append_pieces(std::int64_t begin, std::int64_t end, std::vector<DocumentPiece>& pieces) const;

  private:
    std::span<const std::int64_t> document_begins_;
    std::vector<std::int32_t> documents_;  // position → document
    std::vector<std::int64_t> begins_;     // position → first token in the epoch's stream; then the total
};

class SequenceOrder {
  public:
    // The spanned numbers must outlive the order; at least one token, block_tokens > 0.
    SequenceOrder(std::span<const std::int64_t> document_begins, std::uint64_t seed,
                  std::int64_t block_tokens);

    std::int64_t block_tokens() const { return block_tokens_; }
    // Whole blocks in one epoch's tokens; at least 1. Blocks e·n … e·n + n − 1 are called epoch e.
    std::int64_t blocks_per_epoch() const;
    // Pieces of tokens [begin, end) of the endless stream, in order.
    std::vector<DocumentPiece> pieces(std::int64_t begin, std::int64_t end);
    std::vector<DocumentPiece> block_pieces(std::int64_t block) {
        return pieces(block * block_tokens_, (block + 1) * block_tokens_);
    }

  private:
    const EpochOrder& epoch_order(std::int64_t epoch);

    struct KnownEpoch {
        std::int64_t epoch = -1;
        std::unique_ptr<EpochOrder> order;
    };

    std::span<const std::int64_t> document_begins_;
    std::uint64_t seed_;
    std::int64_t block_tokens_;
    std::int64_t epoch_tokens_;
    KnownEpoch known_[2];  // newest first
};

}  // namespace atl
