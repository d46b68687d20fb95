// Counts what libtorch allocates on this thread: c10's allocator for processor memory is replaced once, for the
// whole process, by one that passes everything on and keeps books where a scope is open.
//
// Threads: a scope counts the allocations of the thread that opened it. Cost without a scope: one thread-local load.
#pragma once

#include <cstdint>

namespace atl {

struct AllocationCount {
    std::int64_t count = 0;
    std::int64_t live_bytes = 0;
    std::int64_t peak_bytes = 0;
};

// While it lives, allocations of this thread are charged to `charged`, which outlives all memory so allocated.
class CountAllocations {
  public:
    explicit CountAllocations(AllocationCount& charged);
    ~CountAllocations();
    CountAllocations(const CountAllocations&) = delete;
    CountAllocations& operator=(const CountAllocations&) = delete;

  private:
    AllocationCount* outer_;
};

}  // namespace atl
