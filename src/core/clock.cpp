#include "core/clock.h"

namespace atl {

TimePoint SystemClock::now() const {
    return std::chrono::steady_clock::now();
}

std::int64_t SystemClock::unix_ms() const {
    return std::chrono::duration_cast<Milliseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

}  // namespace atl
