// How fast a site sends to all its peers together while something is on its way: what its link, or theirs, lets through.
// Measured once from when nothing was on its way until that is so again: from the first arrival until the first peer has
// all it is sent, for a quarter of a second at least.
//
// Pure; bytes, and times of the caller's clock. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/clock.h"

namespace atl {

class UplinkMeter {
  public:
    // `arrived`: bytes at the peers since the beginning. `busy`: how many peers have more waiting or on its way.
    void sample(std::int64_t arrived, std::size_t busy, TimePoint now);
    // 0: not measured yet.
    double bytes_per_second() const { return estimate_; }

  private:
    struct Sample {
        TimePoint when{};
        std::int64_t arrived = 0;
    };
    void end_stretch();

    std::size_t busy_ = 0;
    std::int64_t before_ = 0;             // arrived when the stretch began
    std::optional<Sample> first_, last_;  // of it, from the first arrival on
    bool is_measured_ = false;            // since nothing was on its way
    double estimate_ = 0;
};

}  // namespace atl
