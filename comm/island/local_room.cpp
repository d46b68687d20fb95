#include "comm/island/local_room.h"

#include <algorithm>

#include "core/check.h"
#include "core/error.h"

namespace atl {

LocalRoom::LocalRoom(std::int32_t size, std::string group)
    : size(size), group(std::move(group)), buffers(size), strings(size), present_(size, false) {}

void LocalRoom::meet(std::int32_t rank, const char* operation, Milliseconds timeout) {
    std::unique_lock lock(mutex_);
    throw_if_closed();
    ATOLL_CHECK(!present_[rank], "member {} of {} called twice at once", rank, group);
    present_[rank] = true;
    const std::int64_t my_meeting = meeting_;
    if (++arrived_ == size) {  // the last one to come opens the door
        arrived_ = 0;
        std::fill(present_.begin(), present_.end(), false);
        ++meeting_;
        door_.notify_all();
        return;
    }
    const bool open =
        door_.wait_for(lock, timeout, [&] { return meeting_ != my_meeting || !failure_.empty(); });
    if (meeting_ != my_meeting) return;
    if (!open) {
        close_locked(
            fmt::format("[island] {} in group {}: waited {} ms for rank {}; raise the collective's timeout "
                        "if it is only slow",
                        operation, group, timeout.count(), absent_ranks()));
    }
    throw_if_closed();
}

void LocalRoom::close(const std::string& why) {
    std::lock_guard lock(mutex_);
    close_locked(why);
}

void LocalRoom::close_locked(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    door_.notify_all();
}

void LocalRoom::throw_if_closed() const {
    if (!failure_.empty()) throw CommError(failure_);
}

std::string LocalRoom::absent_ranks() const {
    std::string names;
    for (std::int32_t r = 0; r < size; ++r) {
        if (!present_[r]) names += (names.empty() ? "" : ", ") + std::to_string(r);
    }
    return names;
}

}  // namespace atl
