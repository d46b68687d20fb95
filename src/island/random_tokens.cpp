#include "island/random_tokens.h"

#include <algorithm>

namespace atl {

void fill_with_random_tokens(Island& island, const RandomStream& random, std::int64_t step) {
    const BatchShape& shape = island.options().batch;
    for (std::int64_t k = 0; k < island.local_micro_batches(); ++k) {
        const std::int64_t before = step * shape.micro_batches() + island.micro_batch_of(k);
        fill_with_random_tokens(island.inputs(k), island.options(), random,
                                before * shape.micro_batch_tokens());
    }
}

void fill_with_random_tokens(const MicroBatchView& batch, const IslandOptions& options,
                             const RandomStream& random, std::int64_t first) {
    const std::int64_t context = options.batch.context;
    const std::int64_t tokens = options.batch.micro_batch_tokens();
    const auto vocab = static_cast<std::uint64_t>(options.model.vocab);
    for (std::int64_t t = 0; t < tokens; ++t) {
        batch.tokens[t] =
            static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(first + t), vocab));
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
        batch.positions[t] = static_cast<std::int32_t>(t % context);
        batch.targets[t] = (t + 1) % context == 0 ? -1 : batch.tokens[t + 1];
    }
    for (std::int64_t i = 0; i <= tokens; ++i) {
        batch.starts[i] = static_cast<std::int32_t>(std::min(i * context, tokens));
    }
}

}  // namespace atl
