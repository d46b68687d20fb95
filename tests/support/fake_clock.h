// A clock that moves only when the test says so.
#pragma once

#include <atomic>

#include "core/clock.h"

namespace atl::test {

class FakeClock final : public Clock {
  public:
    TimePoint now() const override { return TimePoint(std::chrono::nanoseconds(nanoseconds_.load())); }
    std::int64_t unix_ms() const override { return nanoseconds_.load() / 1'000'000; }
    void advance(std::chrono::nanoseconds duration) { nanoseconds_ += duration.count(); }

  private:
    std::atomic<std::int64_t> nanoseconds_{0};
};

}  // namespace atl::test
