// One fragment's mean as it comes together, chunk by chunk, on one basis: the contributors of a direct attempt, or
// the attempt whose owners make it. A later attempt on another basis starts it anew.
//
// Memory: the fragment in fp32, kept from round to round. Not thread-safe.
#pragma once

#include <span>
#include <vector>

#include "rounds/plan.h"

namespace atl {

class FragmentMean {
  public:
    // Forgets every chunk if the layout or the basis is another than before.
    void prepare(const FragmentPlan& layout, const AttemptPlan& basis);
    void forget() { basis_ = {}; }  // before the next prepare
    bool has(std::int64_t chunk) const { return has_[static_cast<std::size_t>(chunk)]; }
    void set(std::int64_t chunk) { has_[static_cast<std::size_t>(chunk)] = true; }
    std::span<float> chunk(std::int64_t chunk);
    std::span<const float> values() const { return values_; }
    std::int64_t bytes() const { return static_cast<std::int64_t>(values_.capacity() * sizeof(float)); }

  private:
    FragmentPlan layout_;
    AttemptPlan basis_;
    std::vector<float> values_;
    std::vector<bool> has_;
};

}  // namespace atl
