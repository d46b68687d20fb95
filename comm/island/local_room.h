// The room where the members of an in-process group meet: all come, then all go on.
//
// Threads: one per member, and fail() from any. Errors: CommError naming who stayed away, or why the room was closed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/buffer_view.h"
#include "core/clock.h"

namespace atl {

class LocalRoom {
  public:
    LocalRoom(std::int32_t size, std::string group);

    // Returns once all members have come.
    void meet(std::int32_t rank, const char* operation, Milliseconds timeout);
    // Ends all meetings, now and later, for this reason; the first one counts.
    void close(const std::string& why);

    const std::int32_t size;
    const std::string group;
    // What the members bring: set before a meeting, read by the others after it.
    std::vector<BufferView> buffers;   // by rank
    std::vector<std::string> strings;  // by rank

  private:
    void close_locked(std::string why);
    void throw_if_closed() const;
    std::string absent_ranks() const;

    std::mutex mutex_;
    std::condition_variable door_;
    std::int32_t arrived_ = 0;
    std::int64_t meeting_ = 0;
    std::vector<bool> present_;
    std::string failure_;
};

}  // namespace atl
