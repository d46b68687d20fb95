// The outer state of a whole model: its fragments, and what moves between them and the flat list of all parameters
// (fp32, tensors sorted by name), which is how an island gives and takes its local ones.
//
// Threads: one caller. Errors: sizes that differ are a CheckError. Memory: that of the fragments.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "outer/outer.h"
#include "outer/outer_state.h"

namespace atl {

struct OuterModelOptions {
    std::vector<std::pair<std::string, std::int64_t>> tensors_and_elements;
    int fragments = 1;
    OuterBuffers buffers;
};

class OuterModel {
  public:
    explicit OuterModel(const OuterModelOptions& options);

    std::vector<OuterFragment>& fragments() { return fragments_; }
    OuterFragment& fragment(FragmentId id) { return fragments_.at(static_cast<std::size_t>(id.value())); }

    // The run begins with these parameters: they are the anchors; momentum and residuals are zero.
    void begin(std::span<const float> parameters);
    void copy_anchors(std::span<float> parameters) const;
    void clear_residuals();  // the state was taken over from another site
    void end_pending();      // what was under way is void

    // What is equal on all sites, for joiners: anchor and moments of each fragment.
    std::vector<std::span<float>> shared_parts();

    // The fragment's Δ from the local parameters, plus `error_feedback` times its residual if it has one.
    void contribute(FragmentId id, std::span<const float> local, float error_feedback, std::span<float> delta);
    // A commit: the outer step of one fragment, and its share of the local parameters.
    void apply(FragmentId id, const OuterSettings& settings, Round round, std::span<const float> mean_delta,
               std::span<float> local);

  private:
    std::vector<OuterFragment> fragments_;
    std::vector<float> part_;  // of the local parameters: those of one fragment
};

}  // namespace atl
