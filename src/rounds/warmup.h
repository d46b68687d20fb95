// The warm-up of the outer step: rounds in which the sites are only averaged, then a momentum that rises.
//
// A run from scratch moves far and in changing directions at first, and Nesterov's 0.9 makes of every Δ about ten of its
// length over the rounds that follow, which a short run has not. So in the first R rounds γ = 1 and μ = 0, and in the R
// rounds after them both go linearly to what the run asks for.
//
// Pure; a function of the round's number, so a resumed run is where it was. Costs nothing on the wire.
#pragma once

#include <cstdint>

#include "core/ids.h"

namespace atl {

struct OuterStep {
    double lr = 1;        // γ
    double momentum = 0;  // μ
    bool operator==(const OuterStep&) const = default;
};

// What the round uses of a run that comes to `full`; `warmup_rounds` = R, 0 for none.
OuterStep warmed_up(const OuterStep& full, std::int64_t warmup_rounds, Round round);

}  // namespace atl
