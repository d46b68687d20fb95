// A short slice is a thread's, and that of the threads it starts, for as long as its object lives.
#include "core/short_time_slice.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

namespace atl {
namespace {

// As the kernel has it, in nanoseconds; 0 where it has none (before Linux 6.12).
std::uint64_t slice_of_this_thread() {
    std::array<std::byte, 56> attributes{};  // sched_setattr(2): the slice lies behind five other fields
    if (::syscall(SYS_sched_getattr, 0, attributes.data(), attributes.size(), 0) != 0) return 0;
    std::uint64_t slice = 0;
    std::memcpy(&slice, attributes.data() + 24, sizeof slice);
    return slice;
}

TEST(ShortTimeSlice, holds_for_the_thread_and_those_it_starts_until_its_end) {
    const std::uint64_t before = slice_of_this_thread();
    const auto is_shorter = [&](std::uint64_t slice) { return before == 0 ? slice == 0 : slice < before; };
    {
        const ShortTimeSlice prompt;
        EXPECT_TRUE(is_shorter(slice_of_this_thread()));
        std::uint64_t of_child = before;
        std::jthread([&] { of_child = slice_of_this_thread(); }).join();
        EXPECT_TRUE(is_shorter(of_child));
    }
    EXPECT_EQ(slice_of_this_thread(), before);
}

}  // namespace
}  // namespace atl
