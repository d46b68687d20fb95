// Other legal orders of programs, for whatever must give the same result in any of them.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace atl::test {

// All ranks' programs of one island in a random order that means the same: data edges hold, so gradients are added up
// in the same order, and all ranks issue collectives and messages so that none waits for ever, in any mode. Depending
// on the seed, micro-batches are run one after another, all at once, or two at a time as strands; every second seed
// does without the programs' `after` edges. The programs must pass the checker.
std::vector<Program> random_reordering(const std::vector<Program>& programs, std::uint64_t seed);

}  // namespace atl::test
