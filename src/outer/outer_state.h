// The outer state of one rank: anchor (θ_outer), outer momentum and error-feedback residual of every fragment,
// each a flat fp32 buffer with named slices, one per tensor (or box of a tensor) that the rank keeps.
//
// Memory: 4 bytes per element for the anchor, 4 for the momentum (none for SGD), 4 for the residual when the
// codec uses one. The object owns the buffers; spans stay valid while it lives.
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
    std::int64_t begin = 0;
    std::int64_t elements = 0;
};

class OuterFragment {
  public:
    OuterFragment(std::vector<OuterSlice> slices, bool with_momentum, bool with_residual);

    const std::vector<OuterSlice>& slices() const { return slices_; }
    std::int64_t elements() const { return static_cast<std::int64_t>(anchor_.size()); }
    std::span<float> anchor() { return anchor_; }
    std::span<float> momentum() { return momentum_; }  // empty without
    std::span<float> residual() { return residual_; }  // empty without

    // One named part of the state, as it stands in a checkpoint: "anchor/NAME", "outer_momentum/NAME",
    // "residual/NAME". The residual is this site's own; the rest is equal on all sites.
    struct Section {
        std::string name;
        std::size_t slice = 0;  // index into slices()
        std::span<float> values;
    };
    std::vector<Section> sections();

  private:
    std::vector<OuterSlice> slices_;
    std::vector<float> anchor_, momentum_, residual_;
};

// Slices one after the other, in the order given.
std::vector<OuterSlice> consecutive_slices(
    const std::vector<std::pair<std::string, std::int64_t>>& tensors_and_elements);

}  // namespace atl
