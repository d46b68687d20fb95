// What keys mean together: derived values first, then combinations that can't be.
#pragma once

#include <vector>

#include "config/assign.h"
#include "config/run_config.h"

namespace atl {

// Fills in everything that has no value of its own yet; takes presets apart.
void derive_values(RunConfig& config, const Origins& origins, Problems& problems);

// With fewer, DiLoCo averages unless it is told a momentum: two and four sites ended long runs well ahead that way
// (tools/bench/README.md). From so many on the published momentum holds.
inline constexpr std::int64_t kFewestSitesWithMomentum = 8;

// The outer learning rate that "auto" stands for where there is momentum: 0.6 up to 4 sites, 0.8 from 8, linear between.
double automatic_outer_lr(std::int64_t sites);

// Its outer step has a rate and a momentum that a warm-up can raise.
bool steps_by_momentum(OuterMethodKind method);

void check_combinations(const RunConfig& config, const Origins& origins, Problems& problems);
// Data shards and the initial checkpoint are there.
void check_files(const RunConfig& config, const Origins& origins, Problems& problems);

}  // namespace atl
