#include "rounds/warmup.h"

#include <algorithm>

namespace atl {

OuterStep warmed_up(const OuterStep& full, std::int64_t warmup_rounds, Round round) {
    if (round.value() >= 2 * warmup_rounds) return full;
    const double ramp = std::max(0.0, double(round.value() - warmup_rounds) / double(warmup_rounds));
    return {.lr = 1 + (full.lr - 1) * ramp, .momentum = full.momentum * ramp};
}

}  // namespace atl
