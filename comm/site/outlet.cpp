#include "comm/site/outlet.h"

#include <algorithm>
#include <utility>

namespace atl {

namespace {

// A goodbye comes after what was sent before it.
bool is_bulk(FrameKind kind) {
    return kind == FrameKind::packet || kind == FrameKind::state_piece || kind == FrameKind::goodbye;
}

}  // namespace

bool Outlet::attach(std::int32_t lane, Incarnation process, const Stream& stream) {
    const std::scoped_lock lock(mutex_);
    const bool is_of_lanes = !lanes_.empty() && process == process_;
    if (is_of_lanes && lanes_.try_emplace(lane, stream).second) {
        spread_send_rate();
        return true;
    }
    const bool replaces = is_of_lanes || (lane == 0 && !lanes_.empty());
    if (replaces) {
        for (const auto& [number, old] : lanes_) old->end("another connection took its place");
        lanes_.clear();
        urgent_.clear();
        bulk_.clear();
    }
    Stream& place = waiting_[process][lane];
    if (place) place->end("another connection took its place");
    place = stream;
    if (lane == 0) {
        lanes_ = std::move(waiting_.extract(process).mapped());
        process_ = process;
    }
    spread_send_rate();
    changed_.notify_all();
    return !replaces;
}

void Outlet::detach(const Stream& stream, const std::string& why, const std::function<void()>& ended) {
    const std::scoped_lock lock(mutex_);
    const auto is_it = [&](const auto& entry) { return entry.second == stream; };
    for (auto& [process, lanes] : waiting_) std::erase_if(lanes, is_it);
    std::erase_if(waiting_, [](const auto& entry) { return entry.second.empty(); });
    changed_.notify_all();
    if (std::ranges::none_of(lanes_, is_it)) return;
    for (const auto& [number, each] : lanes_) each->end(why);
    lanes_.clear();
    urgent_.clear();
    bulk_.clear();
    ended();
}

bool Outlet::is_waiting(const Stream& stream) const {
    return std::ranges::any_of(waiting_, [&](const auto& process) {
        return std::ranges::any_of(process.second, [&](const auto& entry) { return entry.second == stream; });
    });
}

double Outlet::round_trip_seconds() const {
    const std::scoped_lock lock(mutex_);
    const auto first = lanes_.find(0);
    return first == lanes_.end() ? 0 : first->second->round_trip_seconds();
}

bool Outlet::shares_memory() const {
    const Stream only = only_lane();
    return only && only->shares_memory();
}

std::int64_t Outlet::unacknowledged_bytes() const {
    const std::scoped_lock lock(mutex_);
    std::int64_t bytes = 0;
    for (const auto& [number, stream] : lanes_) bytes += stream->unacknowledged_bytes();
    return bytes;
}

void Outlet::set_send_rate(double bytes_per_second) {
    const std::scoped_lock lock(mutex_);
    send_rate_ = bytes_per_second;
    spread_send_rate();
}

void Outlet::spread_send_rate() {
    for (const auto& [number, stream] : lanes_)
        stream->set_send_rate(send_rate_ / static_cast<double>(lanes_.size()));
}

bool Outlet::is_open() const {
    const std::scoped_lock lock(mutex_);
    return lanes_.contains(0);
}

void Outlet::add(OutgoingFrame frame) {
    const Stream only = only_lane();
    if (only) only->take_body(frame);
    const std::scoped_lock lock(mutex_);
    // It may have ended meanwhile.
    if (std::ranges::none_of(lanes_, [&](const auto& entry) { return entry.second == only; }))
        frame.taken_by = nullptr;
    (is_bulk(frame.kind) ? bulk_ : urgent_).push_back(std::move(frame));
    changed_.notify_all();
}

// The lane that all frames go out on; none if there are several.
Outlet::Stream Outlet::only_lane() const {
    const std::scoped_lock lock(mutex_);
    return lanes_.size() == 1 ? lanes_.begin()->second : nullptr;
}

std::optional<OutgoingFrame> Outlet::next(std::int32_t lane, const Stream& stream, Deadline deadline) {
    std::unique_lock lock(mutex_);
    const auto is_lane = [&] {
        const auto known = lanes_.find(lane);
        return known != lanes_.end() && known->second == stream;
    };
    const auto may_write = [&](const std::deque<OutgoingFrame>& queue) {
        if (queue.empty()) return false;
        const FrameStream* taken_by = queue.front().taken_by;
        return taken_by == nullptr || taken_by == stream.get();
    };
    const auto has_work = [&] { return may_write(bulk_) || (lane == 0 && may_write(urgent_)); };
    changed_.wait_until(lock, deadline, [&] { return is_lane() ? has_work() : !is_waiting(stream); });
    if (!is_lane() || !has_work()) return {};
    auto& queue = lane == 0 && may_write(urgent_) ? urgent_ : bulk_;
    OutgoingFrame frame = std::move(queue.front());
    queue.pop_front();
    ++being_written_;
    return frame;
}

void Outlet::written() {
    const std::scoped_lock lock(mutex_);
    --being_written_;
    changed_.notify_all();
}

void Outlet::wait_until_written(Deadline deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline,
                        [&] { return urgent_.empty() && bulk_.empty() && being_written_ == 0; });
}

void Outlet::end(const std::string& why) {
    const std::scoped_lock lock(mutex_);
    for (const auto& [lane, stream] : lanes_) stream->end(why);
    changed_.notify_all();
}

}  // namespace atl
