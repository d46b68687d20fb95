// When the fragments of a round are exchanged. With P fragments, n inner steps and an overlap of τ, fragment p = 0 …
// P − 1 is applied when (p + 1)·n/P steps of the round are done, and its exchange starts τ steps before. So at most one
// is pending at any time, every fragment has its turn once a round and n steps apart, and nothing is pending when a
// round ends. A method whose exchange is a round late has τ = n: what the round before has left starts with the round.
//
// Pure. Errors: CheckError unless P ≤ n and τ ≤ n / P; fitting_overlap gives the τ that a short round can have, below n / P.
// Source: Douillard et al., "Streaming DiLoCo" (arXiv 2501.18512), section 2.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ids.h"

namespace atl {

struct FragmentSchedule {
    int inner_steps = 1;    // n
    int fragments = 1;      // P
    int overlap_steps = 0;  // τ
    Step first_step;        // inner steps done before the round

    void check() const;
    Step start_step(FragmentId fragment) const;
    Step apply_step(FragmentId fragment) const;
    // Of a run whose rounds are all like this one.
    std::optional<FragmentId> starts_after(Step steps_done) const;
    std::optional<FragmentId> applies_after(Step steps_done) const;
};

std::int64_t fitting_overlap(std::int64_t overlap_steps, std::int64_t inner_steps, std::int64_t fragments);

// Inner steps of the next round when `left` are left of the run: `inner_steps`, or all that is left if otherwise too few
// would remain to give every fragment a turn.
std::int64_t round_steps(std::int64_t inner_steps, std::int64_t left, std::int64_t fragments);

}  // namespace atl
