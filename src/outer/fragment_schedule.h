// Which fragment of the model is exchanged after which inner step, and how long a round is.
//
// Fragment p starts when (steps done − p·H/P) is a positive multiple of H, H inner steps a round, P fragments:
// with one fragment at the end of every round. Its mean is applied exactly τ (overlap) steps later. Layers go to
// fragments in strides; what belongs to no layer (embeddings, head, final norm) is in fragment 0.
//
// Pure functions; steps are counted from the start of the run. Errors: CheckError for P > H or τ ≥ H/P.
// Source: Douillard et al., "Streaming DiLoCo" (arXiv 2501.18512).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"

namespace atl {

struct FragmentSchedule {
    int inner_steps = 50;   // H
    int fragments = 1;      // P
    int overlap_steps = 0;  // τ

    void check() const;
    int offset_steps(FragmentId fragment) const;  // p·H/P, rounded down
    std::optional<FragmentId> starts_after(Step steps_done) const;
    std::optional<FragmentId> applies_after(Step steps_done) const;
    bool quiescent_after(Step steps_done) const;  // no fragment is pending once the applies are done
};

FragmentId fragment_of_layer(std::optional<int> layer, int fragments);

// Steps of the round that begins at `first_step`: H, or what is left of the run. A short last round is merged
// like any other, its sites weighted by the tokens they trained on.
std::int64_t round_steps(Step first_step, int inner_steps, Step last_step);

}  // namespace atl
