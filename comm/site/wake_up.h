// A descriptor that one thread writes to wake another that polls it. Threads: any.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include "core/check.h"

namespace atl {

class WakeUp {
  public:
    WakeUp() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { ATOLL_CHECK_LE(0, descriptor_); }
    ~WakeUp() { close(descriptor_); }
    WakeUp(const WakeUp&) = delete;
    WakeUp& operator=(const WakeUp&) = delete;

    int descriptor() const { return descriptor_; }
    void ring() const { eventfd_write(descriptor_, 1); }
    void clear() const {
        eventfd_t value = 0;
        eventfd_read(descriptor_, &value);
    }

  private:
    int descriptor_;
};

}  // namespace atl
