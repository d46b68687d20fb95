// A method of the outer loop: what a site contributes, how the contributions are combined, and what the result does to
// the state of one fragment at one site. Rounds, attempts, commits, packets and checkpoints know no method, only this.
//
//   contribution   Δ = start of the round − θ_local, where the start is the anchor unless the method keeps another one
//   combine        mean: one weighted mean, summed by owners;  gather: every contribution goes to every site
//   apply          result, state → anchor, moments, θ_local
//   payload        packet bytes that a site sends, a function of sizes and sites alone
//
// Anchor and outer moments are equal on all sites after a commit, whatever the method: that is what joiners fetch, and
// what is evaluated and exported. What a site has beyond them (residual, a contribution that is kept for the next
// exchange, a start of its own) belongs to it alone, is in its checkpoint, and is forgotten when its work does not count.
//
// A method is a class without state in a file of its own under methods/, known by its name in `outer.method`. Threads:
// any. Errors: CheckError for an unknown name or sizes that differ.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "outer/outer.h"
#include "outer/outer_state.h"

namespace atl {

// What a commit brings to one fragment at one site.
struct OuterResult {
    std::span<const float> mean;
    Round round;
    float share = 1;          // of this site's weight among the contributors; 0: its contribution is not in the mean
    bool overlapped = false;  // inner steps were done after the contribution was handed over
};

class OuterMethod {
  public:
    virtual ~OuterMethod() = default;

    // What drives the anchor, of `outer.momentum` and `outer.nesterov`.
    virtual OuterRule rule(double momentum, bool nesterov) const = 0;

    virtual Combine combine() const { return Combine::mean; }

    // The contribution of a round is exchanged beside the whole round after it. Only the run's last round waits.
    virtual bool is_a_round_late() const { return false; }

    // Every site begins a round with the anchor (unless α keeps some of its own parameters).
    virtual bool equal_on_all_sites() const { return true; }

    virtual OuterBuffers buffers(OuterRule rule) const;

    virtual void contribution(const OuterFragment& fragment, std::span<const float> local,
                              std::span<float> delta) const;

    // `local`: the fragment's parameters, before as trained, after as the next steps begin.
    virtual void apply(OuterFragment& fragment, const OuterSettings& settings, const OuterResult& result,
                       std::span<float> local) const;

    std::int64_t payload_bytes_sent(const EncodedSizes& sizes, int sites) const {
        return atl::payload_bytes_sent(combine(), sizes, sites);
    }

  protected:
    // For methods that are a round late: what the steps since the start have come to becomes the fragment's pending
    // contribution. None is kept where the exchange has waited for all steps, or where the site's own does not count.
    void keep_for_next_round(OuterFragment& fragment, const OuterResult& result,
                             std::span<const float> local) const;
};

const OuterMethod& outer_method(std::string_view name);
std::vector<std::string_view> outer_method_names();

}  // namespace atl
