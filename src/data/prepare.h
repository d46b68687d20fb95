// From text to token shards: OUT/train_NNNNNN.bin, OUT/validation_NNNNNN.bin and OUT/corpus.json.
//
// Documents keep their order; whether one is held out depends on (seed, its index) alone. OUT appears whole or
// not at all: everything is written to OUT.partial, which is renamed last.
// Errors: those of document_source.h; UserError when OUT has content or no document is left to train on.
// Cost: one pass over the text; memory for one shard of each kind and one document.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/file_system.h"

namespace atl {

struct PrepareOptions {
    std::vector<std::filesystem::path> inputs;  // files and folders
    std::filesystem::path out;
    std::string field = "text";  // of JSON lines
    double held_out = 0.01;      // share of the documents, 0 … 1
    std::uint64_t seed = 1;      // of the choice of held-out documents
    std::int64_t shard_tokens = 50'000'000;
};

struct SplitSummary {
    std::int64_t documents = 0;
    std::int64_t bytes = 0;   // of text
    std::int64_t tokens = 0;  // bytes and one end-of-text per document
    std::int64_t shards = 0;
};

struct PrepareSummary {
    std::int64_t files = 0;
    SplitSummary train;
    SplitSummary validation;
    // Nats per byte, see byte_statistics.h.
    double unigram_entropy = 0;                  // of the training text
    double bigram_entropy = 0;                   // of the training text
    double validation_bigram_cross_entropy = 0;  // of the held-out text under the training text's bigrams
};

PrepareSummary prepare_corpus(FileSystem& files, const PrepareOptions& options);
// One JSON object; what OUT/corpus.json holds.
std::string to_json(const PrepareSummary& summary);

}  // namespace atl
