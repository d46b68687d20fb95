// Text in, shards out: compression, JSON lines, folders, the shard format, the held-out split, the statistics,
// and what is said about files that are not what they should be.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "data/byte_statistics.h"
#include "data/corpus.h"
#include "data/document_source.h"
#include "data/prepare.h"
#include "data/text_file.h"
#include "data/token_shard.h"
#include "support/fault_file_system.h"
#include "support/temporary_directory.h"

namespace atl {
namespace {

std::string gzip(const std::string& text) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string packed(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

std::string zstd(const std::string& text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
    return packed;
}

template <class Error, class Action>
std::string message_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

void expect_contains(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
}

class DataFilesTest : public testing::Test {
  protected:
    std::filesystem::path write(const std::string& name, const std::string& content) {
        const std::filesystem::path path = directory_.path() / name;
        files_.create_directories(path.parent_path());
        files_.write_text_atomically(path, content);
        return path;
    }
    std::string read(const std::filesystem::path& path) {
        std::string text;
        read_text_file(files_, path, [&](std::string_view bytes) { text += bytes; });
        return text;
    }
    std::vector<std::string> documents(const std::filesystem::path& path, const std::string& field = "text") {
        std::vector<std::string> found;
        read_documents(files_, path, field, [&](std::string_view text) { found.emplace_back(text); });
        return found;
    }
    std::filesystem::path shard(const std::string& name, const std::vector<Token>& tokens) {
        write_token_shard(files_, directory_.path() / name, tokens);
        return directory_.path() / name;
    }

    test::TemporaryDirectory directory_;
    test::FaultFileSystem files_;
};

TEST_F(DataFilesTest, compressed_files_read_like_plain_ones_also_in_several_members) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919 % 1000) + (i % 13 == 0 ? "\n" : " ");
    EXPECT_EQ(read(write("a.txt", text)), text);
    EXPECT_EQ(read(write("a.txt.gz", gzip(text))), text);
    EXPECT_EQ(read(write("a.txt.zst", zstd(text))), text);
    EXPECT_EQ(read(write("b.txt.gz", gzip(text) + gzip("") + gzip("end"))), text + "end");
    EXPECT_EQ(read(write("b.txt.zst", zstd(text) + zstd("") + zstd("end"))), text + "end");
    EXPECT_EQ(read(write("empty.txt.gz", "")), "");
}

TEST_F(DataFilesTest, a_truncated_or_foreign_compressed_file_is_named_with_the_byte) {
    const std::string text(100'000, 'x');
    for (const std::string extension : {"gz", "zst"}) {
        const std::string packed = extension == "gz" ? gzip(text) : zstd(text);
        const auto cut = write("cut.txt." + extension, packed.substr(0, packed.size() - 5));
        const auto foreign = write("foreign.txt." + extension, "this is plain text");
        expect_contains(
            message_of<CorruptDataError>([&] { read(cut); }),
            cut.string() + ", byte " + std::to_string(packed.size() - 5) + ": the file ends in the middle");
        expect_contains(message_of<CorruptDataError>([&] { read(foreign); }), foreign.string() + ", byte ");
    }
}

TEST_F(DataFilesTest, json_lines_are_documents_of_their_field) {
    const std::string lines =
        "{\"text\": \"one\\n\", \"id\": 1}\n\n{\"id\": 2, \"text\": \"\"}\r\n{\"text\": \"\\u00fc\"}";
    EXPECT_EQ(documents(write("a.jsonl", lines)), (std::vector<std::string>{"one\n", "ü"}));
    EXPECT_EQ(documents(write("a.jsonl.zst", zstd(lines))), (std::vector<std::string>{"one\n", "ü"}));
    EXPECT_EQ(documents(write("b.jsonl", "{\"body\": \"two\"}\n"), "body"), std::vector<std::string>{"two"});
}

TEST_F(DataFilesTest, wrong_json_lines_are_named_with_line_and_reason) {
    const auto missing = write("a.jsonl", "{\"text\": \"x\"}\n{\"body\": \"y\", \"id\": 3}\n");
    expect_contains(message_of<UserError>([&] { documents(missing); }),
                    missing.string() + ":2: no field \"text\"; there are: body, id (choose with --field)");
    expect_contains(message_of<UserError>([&] { documents(missing, "id"); }), ":1: no field \"id\"");
    expect_contains(message_of<UserError>([&] { documents(write("b.jsonl", "{\"text\": 5}")); }),
                    ":1: field \"text\" must be a string, here it is of type number");
    expect_contains(message_of<CorruptDataError>([&] { documents(write("c.jsonl", "{\"text\": \"half\n")); }),
                    ":1, byte ");
    expect_contains(message_of<CorruptDataError>([&] { documents(write("d.jsonl", "[1]\n")); }),
                    "found array, expected a JSON object");
}

TEST_F(DataFilesTest, folders_are_read_to_the_bottom_in_the_order_of_paths) {
    write("in/b.md", "1");
    write("in/a/z.rst", "2");
    write("in/a/y.txt.gz", gzip("3"));
    write("in/a/program.cpp", "int main() {}");
    const auto listed = list_text_files({directory_.path() / "in"});
    ASSERT_EQ(listed.size(), 3U);
    EXPECT_EQ(listed[0].filename(), "y.txt.gz");
    EXPECT_EQ(listed[1].filename(), "z.rst");
    EXPECT_EQ(listed[2].filename(), "b.md");
}

TEST_F(DataFilesTest, inputs_that_cannot_be_read_are_all_reported_at_once) {
    const auto program = write("program.cpp", "int main() {}");
    const std::string message = message_of<UserError>([&] {
        list_text_files({directory_.path() / "absent", program});
    });
    expect_contains(message, "absent: no such file or folder\n");
    expect_contains(message, "program.cpp: must end in .txt, .md, .rst, .jsonl");
}

TEST_F(DataFilesTest, links_in_a_circle_and_pipes_are_named_and_not_waited_for) {
    write("in/a.txt", "1");
    std::filesystem::create_symlink("circle.txt", directory_.path() / "in" / "circle.txt");
    ASSERT_EQ(::mkfifo((directory_.path() / "pipe.txt").c_str(), 0600), 0);
    const std::string message = message_of<UserError>([&] {
        list_text_files({directory_.path() / "in", directory_.path() / "in" / "circle.txt", directory_.path() / "pipe.txt"});
    });
    EXPECT_EQ(std::ranges::count(message, '\n'), 2) << message;
    expect_contains(message, "in/circle.txt: Too many levels of symbolic links");
    expect_contains(message, "pipe.txt: must be a file or a folder");
}

TEST_F(DataFilesTest, bytes_survive_the_tokenizer_and_tokens_without_a_byte_do_not) {
    std::string every_byte;
    for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
    std::vector<Token> tokens;
    append_document(every_byte, tokens);
    EXPECT_EQ(tokens.size(), 257U);
    EXPECT_EQ(tokens.front(), kByteEndOfText);
    EXPECT_EQ(decode_bytes(tokens), every_byte);
    EXPECT_THROW(decode_bytes(std::vector<Token>{257}), CorruptDataError);
}

TEST_F(DataFilesTest, a_shard_is_1024_header_bytes_and_little_endian_tokens) {
    const std::string bytes = files_.read_text(shard("a.bin", {256, 1, 65535}));
    ASSERT_EQ(bytes.size(), 1024U + 6U);
    EXPECT_EQ(bytes.substr(0, 12), std::string("\x88\xd8\x34\x01\x01\x00\x00\x00\x03\x00\x00\x00", 12));
    EXPECT_EQ(bytes.substr(12, 1012), std::string(1012, '\0'));
    EXPECT_EQ(bytes.substr(1024), std::string("\x00\x01\x01\x00\xff\xff", 6));
}

TEST_F(DataFilesTest, truncated_and_foreign_shards_are_named_with_byte_and_expectation) {
    const std::string good = files_.read_text(shard("good.bin", {256, 1, 2}));
    const auto complaint = [&](std::string bytes) {
        const auto path = write("bad.bin", bytes);
        return message_of<CorruptDataError>([&] { TokenShard(files_, path); });
    };
    expect_contains(complaint(good.substr(0, 100)), "bad.bin, byte 100: the file ends in its header; 1024");
    expect_contains(complaint(good.substr(0, 1027)),
                    "byte 1027: the file has 1027 bytes, 1030 were expected for 3 tokens");
    expect_contains(complaint(good + "x"),
                    "byte 1030: the file has 1031 bytes, 1030 were expected for 3 tokens");
    expect_contains(complaint(std::string(2000, 'x')),
                    "byte 0: found 2021161080, expected the magic number 20240520");
    std::string version = good;
    version[4] = 2;
    expect_contains(complaint(version), "byte 4: found version 2, expected 1");
    std::string negative = good;
    negative[11] = '\x80';
    expect_contains(complaint(negative), "byte 8: found -2147483645 tokens");
}

TEST_F(DataFilesTest, a_corpus_joins_shards_and_finds_documents_across_them) {
    shard("train_0.bin", {7, 256, 1, 2, 256});
    shard("train_1.bin", {3, 4, 256, 5});
    const Corpus corpus(files_, {(directory_.path() / "train_*.bin").string()});
    EXPECT_EQ(corpus.token_count(), 9);
    EXPECT_EQ(corpus.document_count(), 4);
    const auto begins = corpus.document_begins();
    EXPECT_EQ(std::vector<std::int64_t>(begins.begin(), begins.end()),
              (std::vector<std::int64_t>{0, 1, 4, 7, 9}));
    std::vector<Token> tokens(6);
    corpus.read(2, tokens);
    EXPECT_EQ(tokens, (std::vector<Token>{1, 2, 256, 3, 4, 256}));
}

TEST_F(DataFilesTest, a_corpus_refuses_what_the_model_cannot_take) {
    const std::string path = shard("a.bin", {256, 300}).string();
    expect_contains(message_of<UserError>([&] { Corpus(files_, {path}); }),
                    "a.bin, token 1: found 300, but model.vocab = 257");
    EXPECT_NO_THROW(Corpus(files_, {path}, {.vocab = 301}));
    expect_contains(message_of<UserError>([&] { Corpus(files_, {path}, {.vocab = 65537}); }),
                    "at most 65536");
    expect_contains(message_of<UserError>([&] { Corpus(files_, {"/nowhere/*.bin"}); }),
                    "/nowhere/*.bin: no such file");
    const std::string empty = shard("empty.bin", {}).string();
    expect_contains(message_of<UserError>([&] { Corpus(files_, {empty}); }), "no tokens");
}

TEST_F(DataFilesTest, preparing_splits_documents_and_loses_none) {
    std::string lines;
    for (int i = 0; i < 500; ++i) lines += "{\"text\": \"document " + std::to_string(i) + "\"}\n";
    const auto input = write("in.jsonl", lines);
    const auto out = directory_.path() / "out";
    const PrepareOptions options{.inputs = {input}, .out = out, .held_out = 0.2, .shard_tokens = 1000};
    const PrepareSummary summary = prepare_corpus(files_, options);
    EXPECT_EQ(summary.train.documents + summary.validation.documents, 500);
    EXPECT_NEAR(summary.validation.documents, 100, 40);
    EXPECT_GT(summary.train.shards, 1);
    EXPECT_EQ(files_.read_text(out / "corpus.json"), to_json(summary));
    EXPECT_FALSE(files_.exists(directory_.path() / "out.partial"));

    const Corpus train(files_, {(out / "train_*.bin").string()});
    const Corpus validation(files_, {(out / "validation_*.bin").string()});
    EXPECT_EQ(train.document_count(), summary.train.documents);
    EXPECT_EQ(train.token_count(), summary.train.bytes + summary.train.documents);
    EXPECT_EQ(validation.document_count(), summary.validation.documents);
    expect_contains(message_of<UserError>([&] { prepare_corpus(files_, options); }), "has content already");
}

TEST_F(DataFilesTest, a_full_disk_leaves_no_half_prepared_corpus) {
    const auto input = write("in.txt", std::string(10'000, 'x'));
    const PrepareOptions options{.inputs = {input}, .out = directory_.path() / "out", .held_out = 0};
    files_.limit_bytes(5000);
    EXPECT_THROW(prepare_corpus(files_, options), StorageError);
    EXPECT_FALSE(files_.exists(options.out));
    EXPECT_FALSE(files_.exists(directory_.path() / "out.partial"));
    files_.limit_bytes(std::nullopt);
    EXPECT_EQ(prepare_corpus(files_, options).train.bytes, 10'000);
}

TEST_F(DataFilesTest, a_corpus_of_held_out_documents_alone_is_refused) {
    const auto input = write("in.txt", "x");
    expect_contains(message_of<UserError>([&] {
                        prepare_corpus(files_,
                                       {.inputs = {input}, .out = directory_.path() / "out", .held_out = 1});
                    }),
                    "no document is left to train on");
    EXPECT_FALSE(files_.exists(directory_.path() / "out"));
}

TEST(ByteStatistics, agree_with_entropies_worked_out_by_hand) {
    std::vector<Token> tokens;
    append_document("abab", tokens);
    ByteStatistics statistics;
    statistics.add_document(tokens);
    EXPECT_EQ(statistics.bytes(), 4);
    EXPECT_EQ(statistics.predictions(), 5);
    // a twice, b twice, end once of 5.
    EXPECT_NEAR(statistics.unigram_entropy(), -(0.8 * std::log(0.4) + 0.2 * std::log(0.2)), 1e-12);
    // After the start always a, after a always b; after b once a, once the end.
    EXPECT_NEAR(statistics.bigram_entropy(), 2.0 / 5 * std::log(2.0), 1e-12);
    // Under its own counts with one more prediction spread over all symbols it is a little worse.
    EXPECT_GT(statistics.bigram_cross_entropy(statistics), statistics.bigram_entropy());
    EXPECT_EQ(ByteStatistics().bigram_entropy(), 0);
    // Nothing known: every symbol is equally likely.
    EXPECT_NEAR(statistics.bigram_cross_entropy(ByteStatistics()), std::log(257.0), 1e-12);
}

}  // namespace
}  // namespace atl
