// What a round costs a site: the time inside its inner steps, the time beside them, the bytes it moved.
//
// begin() when the order to train has come, step() after each inner step, end() when the mean is applied. A round that
// is dropped has no cost: the next begin() forgets it. Seconds. Not thread-safe.
#pragma once

#include <optional>

#include "exchange/traffic.h"
#include "rounds/control.h"

namespace atl {

class RoundStopwatch {
  public:
    void begin(Round round, TimePoint now);
    void step(double step_seconds);
    // Nothing if there was no step.
    std::optional<RoundCost> end(const RoundTraffic& traffic, TimePoint now);

  private:
    std::optional<RoundCost> cost_;
    TimePoint begin_{};
};

}  // namespace atl
