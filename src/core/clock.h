// Time as a constructor argument, so that tests and simulations own it.
//
// Threads: now() from any thread. Deadlines are points of the clock that made them.
#pragma once

#include <chrono>
#include <cstdint>

namespace atl {

using Milliseconds = std::chrono::milliseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
using Deadline = TimePoint;

class Clock {
  public:
    virtual ~Clock() = default;
    virtual TimePoint now() const = 0;         // monotonic
    virtual std::int64_t unix_ms() const = 0;  // wall clock, for logs and files only

    Deadline after(Milliseconds duration) const { return now() + duration; }
};

class SystemClock final : public Clock {
  public:
    TimePoint now() const override;
    std::int64_t unix_ms() const override;
};

inline double seconds(std::chrono::nanoseconds duration) {
    return std::chrono::duration<double>(duration).count();
}

}  // namespace atl
