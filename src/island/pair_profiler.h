// How much a compute op and a collective slow each other down on one rank, by starting both; see op_profiler.h.
#pragma once

#include <vector>

#include "island/island_options.h"
#include "program/overlap_model.h"

namespace atl {

// Collective: every rank calls it and gets the same.
std::vector<PairSlowdown> measure_pairs(const IslandOptions& options, const IslandLinks& links);

}  // namespace atl
