// The outer state of a fragment: anchor (θ_outer), outer moments, error-feedback residual, what a method keeps for this
// site alone, and the Δ that is under way while inner steps go on, each a flat fp32 buffer with named slices, one per
// tensor.
//
// Memory: 4 bytes per element for the anchor, 4 for the momentum (none for SGD; 8 with Adam), 4 for the residual when the
// codec uses one, 4 for each buffer of a method's own, 4 for Δ while it is pending. The object owns the buffers; their
// spans stay valid while it lives, that of the Δ until it is no longer pending.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "outer/outer.h"

namespace atl {

struct OuterSlice {
    std::string tensor;  // logical name
    std::int64_t begin = 0;            // in the fragment
    std::int64_t elements = 0;
    std::int64_t first_parameter = 0;  // its place in the flat list of all parameters
};

// Which buffers there are beside the anchor.
struct OuterBuffers {
    bool momentum = true;
    bool second_moment = false;
    bool residual = false;
    bool own_start = false;     // rounds do not begin with the anchor
    bool own_momentum = false;  // of this site's contributions alone
};

class OuterFragment {
  public:
    OuterFragment(std::vector<OuterSlice> slices, const OuterBuffers& buffers);

    const std::vector<OuterSlice>& slices() const { return slices_; }
    std::int64_t elements() const { return static_cast<std::int64_t>(anchor_.size()); }
    std::span<float> anchor() { return anchor_; }
    std::span<const float> anchor() const { return anchor_; }
    std::span<float> momentum() { return momentum_; }  // empty without
    std::span<float> second_moment() { return second_moment_; }  // empty without
    OuterMoments moments() { return {.momentum = momentum_, .second = second_moment_}; }
    std::span<float> residual() { return residual_; }          // empty without
    std::span<float> own_momentum() { return own_momentum_; }  // empty without

    // Where a round begins at this site: the anchor, unless the method has another.
    std::span<float> start() { return start_.empty() ? anchor_ : start_; }
    std::span<const float> start() const { return start_.empty() ? anchor_ : start_; }
    void return_to_anchor();

    // The Δ that is under way or will be in the next round, without the residual; empty if there is none.
    std::span<float> pending() { return pending_; }
    std::span<const float> pending() const { return pending_; }
    void make_pending() { pending_.resize(anchor_.size()); }
    void end_pending() { pending_.clear(); }

    // All that is this site's own: nothing is under way, and the next round begins with the anchor.
    void forget_own();

    // The fragment's part of the flat list of all parameters, and back.
    void gather(std::span<const float> parameters, std::span<float> part) const;
    void scatter(std::span<const float> part, std::span<float> parameters) const;

    // One named part of the state, as it stands in a checkpoint: "anchor/NAME", "outer_momentum/NAME", "outer_second/NAME",
    // equal on all sites; "residual/NAME", "start/NAME", "own_momentum/NAME", "pending/NAME", this site's own.
    struct Section {
        std::string name;
        std::size_t slice = 0;  // index into slices()
        std::span<float> values;
    };
    std::vector<Section> sections();

  private:
    std::vector<OuterSlice> slices_;
    std::vector<float> anchor_, momentum_, second_moment_, residual_, start_, own_momentum_, pending_;
};

}  // namespace atl
