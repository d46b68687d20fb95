// A short time slice: how a thread that mostly waits, and then has little to do, asks to run as soon as it wakes.
//
// Linux lets a thread that wakes interrupt the one that runs, within the slice of that, only if its own slice is
// shorter (EEVDF, from kernel 6.12 on). So a thread that moves data need not wait for milliseconds until one that
// computes on the same processor has had its turn. It gets no more than its fair share, and no privilege is needed.
// Applies to this thread, and to the threads that it starts, until the object ends. Older kernels ignore the wish.
#pragma once

#include <cstdint>

namespace atl {

class ShortTimeSlice {
  public:
    ShortTimeSlice();
    ~ShortTimeSlice();
    ShortTimeSlice(const ShortTimeSlice&) = delete;
    ShortTimeSlice& operator=(const ShortTimeSlice&) = delete;

  private:
    std::uint64_t before_ns_ = 0;
};

}  // namespace atl
