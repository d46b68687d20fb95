#include "data/prepare.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/new_folder.h"
#include "core/random.h"
#include "data/byte_statistics.h"
#include "data/document_source.h"
#include "data/token_shard.h"

namespace atl {
namespace {

// One side of the split: its shards and its statistics.
struct Split {
    Split(FileSystem& files, const std::filesystem::path& directory, const std::string& name,
          std::int64_t shard_tokens)
        : writer(files, directory, name, shard_tokens) {}

    void add(std::span<const Token> document) {
        writer.append(document);
        statistics.add_document(document);
    }
    SplitSummary finish() {
        writer.finish();
        return {.documents = statistics.documents(),
                .bytes = statistics.bytes(),
                .tokens = writer.token_count(),
                .shards = static_cast<std::int64_t>(writer.paths().size())};
    }

    TokenShardWriter writer;
    ByteStatistics statistics;
};

PrepareSummary write_shards(FileSystem& files, const PrepareOptions& options,
                            const std::vector<std::filesystem::path>& paths,
                            const std::filesystem::path& directory) {
    Split train(files, directory, "train", options.shard_tokens);
    Split validation(files, directory, "validation", options.shard_tokens);
    const RandomStream choice(options.seed, "held-out documents");
    std::uint64_t index = 0;
    std::vector<Token> tokens;
    for (const std::filesystem::path& path : paths) {
        read_documents(files, path, options.field, [&](std::string_view text) {
            tokens.clear();
            append_document(text, tokens);
            (choice.uniform(index++) < options.held_out ? validation : train).add(tokens);
        });
    }
    PrepareSummary summary;
    summary.files = static_cast<std::int64_t>(paths.size());
    summary.train = train.finish();
    summary.validation = validation.finish();
    summary.unigram_entropy = train.statistics.unigram_entropy();
    summary.bigram_entropy = train.statistics.bigram_entropy();
    summary.validation_bigram_cross_entropy = validation.statistics.bigram_cross_entropy(train.statistics);
    return summary;
}

nlohmann::ordered_json split_json(const SplitSummary& split) {
    return {{"documents", split.documents},
            {"bytes", split.bytes},
            {"tokens", split.tokens},
            {"shards", split.shards}};
}

}  // namespace

PrepareSummary prepare_corpus(FileSystem& files, const PrepareOptions& options) {
    const auto paths = list_text_files(options.inputs);
    NewFolder folder(files, options.out);
    const PrepareSummary summary = write_shards(files, options, paths, folder.partial());
    if (summary.train.documents == 0)
        throw UserError(fmt::format("no document is left to train on: {} in {} files, {} of them held out",
                                    summary.validation.documents, summary.files,
                                    summary.validation.documents));
    files.write_text_atomically(folder.partial() / "corpus.json", to_json(summary));
    folder.commit();
    return summary;
}

std::string to_json(const PrepareSummary& summary) {
    const nlohmann::ordered_json json = {
        {"tokenizer", "bytes"},
        {"vocabulary", kByteVocabulary},
        {"end_of_text", kByteEndOfText},
        {"files", summary.files},
        {"train", split_json(summary.train)},
        {"validation", split_json(summary.validation)},
        {"unigram_entropy_nats_per_byte", summary.unigram_entropy},
        {"bigram_entropy_nats_per_byte", summary.bigram_entropy},
        {"validation_bigram_cross_entropy_nats_per_byte", summary.validation_bigram_cross_entropy},
    };
    return json.dump(2) + "\n";
}

}  // namespace atl
