// Random programs of several ranks that compute, meet in collectives and send each other values, as a pure function of a
// seed. They pass the checker, all their numbers stay finite, and they may be run in every mode.
#pragma once

#include <vector>

#include "program/program.h"

namespace atl::test {

struct RandomRanks {
    std::uint64_t seed = 0;
    std::int32_t ranks = 2;
    std::int32_t events = 60;  // compute ops, collectives and messages of all ranks together
};

// Groups: "world", of all ranks, on link_inter, and with more than two ranks "tp", ranks 0 and 1, on link_intra. Every
// rank has the inputs "x", "y" and "gamma", f32, and the output "out".
std::vector<Program> random_rank_programs(const RandomRanks& options);

}  // namespace atl::test
