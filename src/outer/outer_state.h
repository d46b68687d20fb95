// The outer state of a fragment: anchor (θ_outer), outer momentum, error-feedback residual, and the Δ that is under way
// while inner steps go on, each a flat fp32 buffer with named slices, one per tensor.
//
// Memory: 4 bytes per element for the anchor, 4 for the momentum (none for SGD; 8 with Adam), 4 for the residual when the
// codec uses one, 4 for Δ while it is pending. The object owns the buffers; spans of the first three stay valid while it
// lives, of the Δ until it is no longer pending.
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
    std::span<float> residual() { return residual_; }  // empty without

    // The Δ handed to the exchange and not applied yet, as it was handed over; empty if there is none.
    std::span<float> pending() { return pending_; }
    void make_pending() { pending_.resize(anchor_.size()); }
    void end_pending() { pending_.clear(); }

    // The fragment's part of the flat list of all parameters, and back.
    void gather(std::span<const float> parameters, std::span<float> part) const;
    void scatter(std::span<const float> part, std::span<float> parameters) const;

    // One named part of the state, as it stands in a checkpoint: "anchor/NAME", "outer_momentum/NAME", "outer_second/NAME",
    // "residual/NAME", "pending/NAME". The last two are this site's own; the rest is equal on all sites.
    struct Section {
        std::string name;
        std::size_t slice = 0;  // index into slices()
        std::span<float> values;
    };
    std::vector<Section> sections();

  private:
    std::vector<OuterSlice> slices_;
    std::vector<float> anchor_, momentum_, second_moment_, residual_, pending_;
};

}  // namespace atl
