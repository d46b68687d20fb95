// Laws of the data order over random corpora: every token of an epoch exactly once whatever the block size,
// blocks that don't depend on who reads what when, and batches that hold exactly their block.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/random.h"
#include "data/micro_batch.h"
#include "data/sequence_order.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

constexpr std::uint64_t kCases = 200;

// Document boundaries of a random corpus; lengths are long-tailed, as in real text.
std::vector<std::int64_t> random_document_begins(const RandomStream& random) {
    std::vector<std::int64_t> begins = {0};
    const std::uint64_t documents = 1 + random.below(0, 40);
    for (std::uint64_t i = 0; i < documents; ++i) {
        const std::uint64_t largest = random.below(2 * i + 1, 10) == 0 ? 500 : 20;
        begins.push_back(begins.back() + 1 + static_cast<std::int64_t>(random.below(2 * i + 2, largest)));
    }
    return begins;
}

// How often each corpus token occurs in stream tokens [0, end), read in blocks.
std::vector<int> count_tokens(SequenceOrder& order, std::int64_t blocks, std::int64_t tokens) {
    std::vector<int> counts(static_cast<std::size_t>(tokens));
    for (std::int64_t block = 0; block < blocks; ++block)
        for (const DocumentPiece& piece : order.block_pieces(block))
            for (std::int64_t i = 0; i < piece.tokens; ++i)
                ++counts[static_cast<std::size_t>(piece.corpus_offset + i)];
    return counts;
}

TEST(DataOrder, every_token_is_used_once_an_epoch_and_never_twice_before_all_were_used) {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomStream random(seed, "data order");
        const auto begins = random_document_begins(random);
        const std::int64_t tokens = begins.back();
        const auto block_tokens = 1 + static_cast<std::int64_t>(random.below(1000, 97));
        SequenceOrder order(begins, seed, block_tokens);
        const std::int64_t epochs = 3;
        const std::int64_t blocks = epochs * tokens / block_tokens;
        const auto counts = count_tokens(order, blocks, tokens);
        EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), blocks * block_tokens);
        const int whole_epochs = static_cast<int>(blocks * block_tokens / tokens);
        for (const int count : counts) {
            ASSERT_GE(count, whole_epochs);
            ASSERT_LE(count, whole_epochs + 1);
        }
    }
}

TEST(DataOrder, one_block_as_long_as_the_corpus_is_a_permutation_of_its_documents) {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const auto begins = random_document_begins(RandomStream(seed, "data order"));
        SequenceOrder order(begins, seed, begins.back());
        for (const std::int64_t epoch : {0, 1, 7}) {
            std::vector<std::int64_t> offsets;
            for (const DocumentPiece& piece : order.block_pieces(epoch)) {
                EXPECT_TRUE(piece.ends_document);
                offsets.push_back(piece.corpus_offset);
            }
            std::ranges::sort(offsets);
            EXPECT_EQ(offsets, std::vector<std::int64_t>(begins.begin(), begins.end() - 1));
        }
    }
}

// Sites read blocks in turns and resume in any place: a block must be the same whoever asks, and in any order.
TEST(DataOrder, a_block_does_not_depend_on_the_number_of_sites_nor_on_what_was_read_before) {
    for (std::uint64_t seed = 0; seed < kCases; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomStream random(seed, "data order");
        const auto begins = random_document_begins(random);
        const std::int64_t block_tokens = 1 + static_cast<std::int64_t>(random.below(1000, 200));
        SequenceOrder alone(begins, seed, block_tokens);
        const std::size_t sites = 1 + random.below(1001, 5);
        std::vector<SequenceOrder> readers;
        for (std::size_t site = 0; site < sites; ++site) readers.emplace_back(begins, seed, block_tokens);
        const RandomPermutation turns(seed, 5, 30);
        for (std::uint64_t turn = 0; turn < 30; ++turn) {
            const auto block = static_cast<std::int64_t>(turns(turn));
            EXPECT_EQ(readers[turn % sites].block_pieces(block), alone.block_pieces(block))
                << "block " << block;
        }
    }
}

TEST(DataOrder, seeds_and_epochs_order_documents_differently) {
    std::vector<std::int64_t> begins(101);
    std::iota(begins.begin(), begins.end(), 0);
    SequenceOrder order(begins, 1, 100);
    SequenceOrder other(begins, 2, 100);
    EXPECT_NE(order.block_pieces(0), order.block_pieces(1));
    EXPECT_NE(order.block_pieces(0), other.block_pieces(0));
}

TEST(DataOrder, micro_batches_hold_exactly_the_tokens_of_their_block_with_their_successors) {
    const test::TemporaryDirectory directory;
    const auto files = make_system_file_system();
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomStream random(seed, "micro-batches");
        const auto begins = random_document_begins(random);
        std::vector<Token> tokens(static_cast<std::size_t>(begins.back()));
        for (std::size_t i = 0; i < tokens.size(); ++i)
            tokens[i] = static_cast<Token>(random.below(5000 + i, 256));
        for (std::size_t i = 0; i + 1 < begins.size(); ++i) tokens[static_cast<std::size_t>(begins[i])] = 256;
        write_token_shard(*files, directory.path() / "a.bin", tokens);
        const Corpus corpus(*files, {(directory.path() / "a.bin").string()});

        const auto context = 1 + static_cast<std::int64_t>(random.below(2000, 30));
        const BatchShape shape{.context = context, .sequences_per_step = 6, .micro_batch = 2};
        BatchReader reader(corpus, shape, seed);
        SequenceOrder order(corpus.document_begins(), seed, shape.block_tokens());
        for (const std::int64_t block : {0, 1, 5}) {
            std::vector<std::int32_t> inputs, targets;
            for (std::int64_t i = 0; i < shape.micro_batches(); ++i) {
                MicroBatch batch(shape.micro_batch_tokens());
                reader.read(block, i, batch.view());
                inputs.insert(inputs.end(), batch.tokens.begin(), batch.tokens.end());
                targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
                for (std::size_t t = 0; t < batch.positions.size(); ++t) {
                    const bool starts =
                        std::ranges::binary_search(batch.starts, static_cast<std::int32_t>(t));
                    ASSERT_EQ(batch.positions[t], starts ? 0 : batch.positions[t - 1] + 1);
                    ASSERT_LT(batch.positions[t], context);
                }
            }
            std::vector<std::int32_t> expected_inputs, expected_targets;
            for (const DocumentPiece& piece : order.block_pieces(block)) {
                for (std::int64_t i = 0; i < piece.tokens; ++i) {
                    const auto place = static_cast<std::size_t>(piece.corpus_offset + i);
                    expected_inputs.push_back(tokens[place]);
                    const bool last = piece.ends_document && i + 1 == piece.tokens;
                    expected_targets.push_back(last ? 256 : tokens[place + 1]);
                }
            }
            EXPECT_EQ(inputs, expected_inputs);
            EXPECT_EQ(targets, expected_targets);
        }
    }
}

}  // namespace
}  // namespace atl
