// Small models and random packed batches for tests of islands.
#pragma once

#include <algorithm>

#include "core/random.h"
#include "island/island.h"

namespace atl::test {

inline ModelShape small_llama(bool tied = false) {
    return {.kind = ModelKind::llama,
            .layers = 2,
            .hidden = 32,
            .heads = 4,
            .kv_heads = 2,
            .head_width = 8,
            .ffn = 48,
            .vocab = 61,
            .context = 12,
            .tied = tied};
}

inline ModelShape small_gpt2() {
    return {.kind = ModelKind::gpt2,
            .layers = 2,
            .hidden = 32,
            .heads = 4,
            .kv_heads = 4,
            .head_width = 8,
            .ffn = 128,
            .vocab = 61,
            .context = 12,
            .tied = true};
}

// Four sequences a step in micro-batches of `micro_batch`.
inline IslandOptions small_island(const ModelShape& model, std::int64_t micro_batch = 2) {
    IslandOptions options;
    options.model = model;
    options.optim.lr = 0.01;
    options.batch = {model.context, 4, micro_batch};
    return options;
}

// Fills a micro-batch whose first sequence is sequence `first_sequence` of a random step: documents of random
// lengths, some targets without a loss. What a sequence holds doesn't depend on the micro-batch it stands in.
inline void fill_random_batch(const MicroBatchView& batch, std::int64_t context, std::int64_t vocab,
                              std::int64_t step, std::int64_t first_sequence) {
    const auto tokens = static_cast<std::int64_t>(batch.tokens.size());
    std::int32_t document = 0;
    std::int64_t documents = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
        const RandomStream random(static_cast<std::uint64_t>(step),
                                  static_cast<std::uint64_t>(first_sequence + t / context));
        const auto place = static_cast<std::uint64_t>(t % context);
        batch.tokens[t] =
            static_cast<std::int32_t>(random.below(3 * place, static_cast<std::uint64_t>(vocab)));
        batch.targets[t] =
            random.below(3 * place + 1, 8) == 0
                ? -1
                : static_cast<std::int32_t>(random.below(3 * place + 1, static_cast<std::uint64_t>(vocab)));
        if (place == 0 || random.below(3 * place + 2, 5) == 0) {
            document = static_cast<std::int32_t>(t);
            batch.starts[documents++] = document;
        }
        batch.positions[t] = static_cast<std::int32_t>(t) - document;
    }
    std::fill(batch.starts.begin() + documents, batch.starts.end(), static_cast<std::int32_t>(tokens));
}

inline StepResult random_step(Island& island, std::int64_t step) {
    const IslandOptions& options = island.options();
    for (std::int64_t k = 0; k < island.local_micro_batches(); ++k) {
        fill_random_batch(island.inputs(k), options.batch.context, options.model.vocab, step,
                          island.micro_batch_of(k) * options.batch.micro_batch);
    }
    return island.step(options.optim.lr);
}

}  // namespace atl::test
