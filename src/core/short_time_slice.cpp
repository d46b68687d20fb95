#include "core/short_time_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace atl {
namespace {

// sched_setattr(2), which the C library does not declare.
struct SchedulingAttributes {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns;
    std::uint64_t deadline_ns;
    std::uint64_t period_ns;
};

constexpr std::uint64_t kSliceNs = 100'000;  // the least that Linux takes

// Of the calling thread; returns what it was. 0 asks for the system's own. Other policies have no such slice.
std::uint64_t set_slice(std::uint64_t slice_ns) {
    SchedulingAttributes attributes{};
    if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return 0;
    if (attributes.policy != SCHED_OTHER) return 0;
    const std::uint64_t before_ns = attributes.slice_ns;
    attributes.slice_ns = slice_ns;
    ::syscall(SYS_sched_setattr, 0, &attributes, 0);
    return before_ns;
}

}  // namespace

ShortTimeSlice::ShortTimeSlice() : before_ns_(set_slice(kSliceNs)) {}

ShortTimeSlice::~ShortTimeSlice() {
    set_slice(before_ns_);
}

}  // namespace atl
