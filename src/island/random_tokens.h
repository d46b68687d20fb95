// Fresh random tokens for benches: uniform, one document a sequence, and every token but a sequence's last has a target.
// A pure function of (stream, step, micro-batch of the site), so any layout trains on the same.
#pragma once

#include "core/random.h"
#include "island/island.h"

namespace atl {

void fill_with_random_tokens(Island& island, const RandomStream& random, std::int64_t step);
// One micro-batch, whose tokens are numbered from `first` on.
void fill_with_random_tokens(const MicroBatchView& batch, const IslandOptions& options,
                             const RandomStream& random, std::int64_t first);

}  // namespace atl
