// The arrays of micro-batches and evaluation windows, spelt out on corpora small enough to read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/check.h"
#include "data/batch_dump.h"
#include "data/evaluation_windows.h"
#include "data/micro_batch.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

using Integers = std::vector<std::int32_t>;

class DataBatchesTest : public testing::Test {
  protected:
    Corpus corpus(const std::vector<Token>& tokens) {
        const auto path = directory_.path() / "corpus.bin";
        write_token_shard(*files_, path, tokens);
        return Corpus(*files_, {path.string()});
    }

    test::TemporaryDirectory directory_;
    std::unique_ptr<FileSystem> files_ = make_system_file_system();
};

TEST_F(DataBatchesTest, a_micro_batch_restarts_positions_with_every_sequence_and_document) {
    // One document longer than a sequence: its order is known without knowing the permutation.
    std::vector<Token> tokens = {256};
    for (Token token = 1; token < 12; ++token) tokens.push_back(token);
    const Corpus one = corpus(tokens);
    BatchReader reader(one, {.context = 4, .sequences_per_step = 2, .micro_batch = 2}, 1);
    MicroBatch batch(8);
    reader.read(0, 0, batch.view());
    EXPECT_EQ(batch.tokens, (Integers{256, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(batch.targets, (Integers{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(batch.positions, (Integers{0, 1, 2, 3, 0, 1, 2, 3}));
    EXPECT_EQ(batch.starts, (Integers{0, 4, 8, 8, 8, 8, 8, 8, 8}));

    // The second block ends the document's epoch after 4 tokens and goes on with the next epoch.
    reader.read(1, 0, batch.view());
    EXPECT_EQ(batch.tokens, (Integers{8, 9, 10, 11, 256, 1, 2, 3}));
    EXPECT_EQ(batch.targets, (Integers{9, 10, 11, 256, 1, 2, 3, 4}));
    EXPECT_EQ(batch.positions, (Integers{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST_F(DataBatchesTest, documents_in_one_sequence_are_pieces_of_their_own) {
    const Corpus two = corpus({256, 1, 2, 256, 4, 5});  // two documents of three tokens, in either order
    BatchReader reader(two, {.context = 6, .sequences_per_step = 1, .micro_batch = 1}, 3);
    MicroBatch batch(6);
    reader.read(0, 0, batch.view());
    const bool in_order = batch.tokens[1] == 1;
    EXPECT_EQ(batch.tokens, in_order ? (Integers{256, 1, 2, 256, 4, 5}) : (Integers{256, 4, 5, 256, 1, 2}));
    EXPECT_EQ(batch.targets, in_order ? (Integers{1, 2, 256, 4, 5, 256}) : (Integers{4, 5, 256, 1, 2, 256}));
    EXPECT_EQ(batch.positions, (Integers{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(batch.starts, (Integers{0, 3, 6, 6, 6, 6, 6}));
}

TEST_F(DataBatchesTest, micro_batches_cut_a_block_without_changing_it) {
    std::vector<Token> tokens;
    for (int i = 0; i < 200; ++i) tokens.push_back(static_cast<Token>(i % 17 == 0 ? 256 : i % 251));
    const Corpus many = corpus(tokens);
    const auto read_all = [&](std::int64_t micro_batch) {
        BatchReader reader(many, {.context = 5, .sequences_per_step = 12, .micro_batch = micro_batch}, 9);
        Integers all;
        for (std::int64_t i = 0; i < reader.shape().micro_batches(); ++i) {
            MicroBatch batch(5 * micro_batch);
            reader.read(2, i, batch.view());
            for (const Integers& values : {batch.tokens, batch.targets, batch.positions})
                all.insert(all.end(), values.begin(), values.end());
        }
        std::ranges::sort(all);  // the arrays are grouped differently; the multiset tells
        return all;
    };
    EXPECT_EQ(read_all(12), read_all(1));
    EXPECT_EQ(read_all(12), read_all(3));
}

TEST_F(DataBatchesTest, evaluation_predicts_every_token_but_the_first_exactly_once) {
    const Corpus text = corpus({256, 1, 2, 3, 256, 5, 6, 7});
    const EvaluationWindows windows(text, {.context = 3, .micro_batch = 2});
    ASSERT_EQ(windows.window_count(), 3);
    MicroBatch batch(6);
    EXPECT_EQ(windows.read(0, 3, batch.view()), 6);
    EXPECT_EQ(batch.tokens, (Integers{256, 1, 2, 3, 256, 5}));
    EXPECT_EQ(batch.targets, (Integers{1, 2, 3, 256, 5, 6}));
    EXPECT_EQ(batch.positions, (Integers{0, 1, 2, 0, 0, 1}));
    EXPECT_EQ(batch.starts, (Integers{0, 3, 4, 6, 6, 6, 6}));

    EXPECT_EQ(windows.read(2, 3, batch.view()), 1);  // the last window has one target, the fourth none
    EXPECT_EQ(batch.tokens, (Integers{6, 0, 0, 0, 0, 0}));
    EXPECT_EQ(batch.targets, (Integers{7, -1, -1, -1, -1, -1}));
    EXPECT_EQ(batch.starts, (Integers{0, 1, 3, 6, 6, 6, 6}));
}

TEST_F(DataBatchesTest, joined_windows_do_not_end_with_documents_and_a_limit_leaves_the_rest_out) {
    const Corpus text = corpus({256, 1, 2, 3, 256, 5, 6, 7, 8});
    const EvaluationWindows windows(text,
                                    {.context = 4, .micro_batch = 2, .documents = WindowDocuments::joined});
    MicroBatch batch(8);
    EXPECT_EQ(windows.read(0, 2, batch.view()), 8);
    EXPECT_EQ(batch.positions, (Integers{0, 1, 2, 3, 0, 1, 2, 3}));
    EXPECT_EQ(batch.starts, (Integers{0, 4, 8, 8, 8, 8, 8, 8, 8}));
    EXPECT_EQ(windows.read(0, 1, batch.view()), 4);
    EXPECT_EQ(batch.targets, (Integers{1, 2, 3, 256, -1, -1, -1, -1}));
}

TEST_F(DataBatchesTest, a_single_token_leaves_nothing_to_predict) {
    const Corpus text = corpus({256});
    EXPECT_EQ(EvaluationWindows(text, {.context = 3, .micro_batch = 1}).window_count(), 0);
}

TEST_F(DataBatchesTest, a_view_of_the_wrong_size_is_a_failed_check) {
    const Corpus text = corpus({256, 1});
    BatchReader reader(text, {.context = 4, .sequences_per_step = 1, .micro_batch = 1}, 1);
    MicroBatch batch(3);
    EXPECT_THROW(reader.read(0, 0, batch.view()), CheckError);
}

TEST_F(DataBatchesTest, a_dump_holds_header_and_records_as_its_format_says) {
    MicroBatch batch(2);
    batch.tokens = {1, 2};
    batch.targets = {2, -1};
    batch.positions = {0, 1};
    batch.starts = {0, 2, 2};
    const auto path = directory_.path() / "batches.bin";
    BatchDump dump(*files_, path, {.context = 2, .sequences_per_step = 4, .micro_batch = 1});
    dump.append(Step(7), 40, 3, batch.view());
    const std::string bytes = files_->read_text(path);
    ASSERT_EQ(bytes.size(), 32U + 24 + 16 * 2 + 4);
    EXPECT_EQ(bytes.substr(0, 8), "ATOLLBAT");
    std::array<std::int64_t, 6> words{};
    std::memcpy(words.data(), bytes.data() + 8, sizeof words);
    EXPECT_EQ(words, (std::array<std::int64_t, 6>{1, 1, 2, 7, 40, 3}));
    Integers arrays(9);
    std::memcpy(arrays.data(), bytes.data() + 56, 36);
    EXPECT_EQ(arrays, (Integers{1, 2, 2, -1, 0, 1, 0, 2, 2}));
}

}  // namespace
}  // namespace atl
