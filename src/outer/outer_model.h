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
#include "outer/method.h"
#include "outer/outer.h"
#include "outer/outer_state.h"

namespace atl {

struct OuterModelOptions {
    std::vector<std::pair<std::string, std::int64_t>> tensors_and_elements;
    int fragments = 1;
    OuterBuffers buffers;
    const OuterMethod* method = &outer_method("diloco");
};

// How a contribution is made.
struct ContributionOptions {
    bool overlapped = false;   // inner steps go on until it is applied
    float error_feedback = 0;  // share of the residual, if there is one, that is added
};

class OuterModel {
  public:
    explicit OuterModel(const OuterModelOptions& options);

    std::vector<OuterFragment>& fragments() { return fragments_; }
    OuterFragment& fragment(FragmentId id) { return fragments_.at(static_cast<std::size_t>(id.value())); }

    const OuterMethod& method() const { return method_; }

    // The run begins with these parameters: they are the anchors, moments are zero, and nothing is this site's own.
    void begin(std::span<const float> parameters);
    void copy_anchors(std::span<float> parameters) const;
    void copy_starts(std::span<float> parameters) const;  // where the round begins at this site
    void forget_own();  // the state was taken over from another site
    void drop_work();   // the steps of this round are void; what a round before has left for the exchange is not

    // What is equal on all sites, for joiners: anchor and moments of each fragment.
    std::vector<std::span<float>> shared_parts();

    // The fragment's contribution. An overlapped one is pending until it is applied: made again after a resume, it is the
    // same, whatever the local parameters have become. One that waits for nothing has all there is, also what an earlier
    // round has left.
    void contribute(FragmentId id, std::span<const float> local, const ContributionOptions& options,
                    std::span<float> delta);
    // A commit: the outer step of one fragment, and its share of the local parameters.
    void apply(FragmentId id, const OuterSettings& settings, const OuterResult& result, std::span<float> local);

  private:
    const OuterMethod& method_;
    std::vector<OuterFragment> fragments_;
    std::vector<float> part_;  // of the local parameters: those of one fragment
};

}  // namespace atl
