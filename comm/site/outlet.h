// What waits to be written to one peer over streams, and the connections ("lanes") it can go out on. Packets and pieces of
// state go out on whichever lane is free; the small frames that others wait for overtake them on the first lane.
//
// All lanes lead to one process: the one that the newest first lane leads to. A lane to another waits for that one's first
// lane: it may have come before it, or be the last news of a process that is gone, which must not end its successor's.
//
// Memory: bounded by the credit that the peer has given. Threads: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "comm/site/frame_stream.h"

namespace atl {

class Outlet {
  public:
    using Stream = std::shared_ptr<FrameStream>;  // shared: one thread reads, one writes

    // A lane that there was before has ended: false, and the caller must say that frames may be lost.
    bool attach(std::int32_t lane, Incarnation process, const Stream& stream);
    // The end of one lane is the end of all. Calls `ended` before another connection can take its place; not if it was
    // none of the lanes, or none any more.
    void detach(const Stream& stream, const std::string& why, const std::function<void()>& ended);
    bool is_open() const;                         // the first lane is there
    double round_trip_seconds() const;            // of the first lane; 0: not known
    bool shares_memory() const;                   // all bodies go through memory
    std::int64_t unacknowledged_bytes() const;    // of all lanes
    void set_send_rate(double bytes_per_second);  // of all lanes together, those to come too; 0: no limit

    void add(OutgoingFrame frame);  // one at a time
    // The next frame for a lane; nothing when the time is up or the stream is no lane any more.
    std::optional<OutgoingFrame> next(std::int32_t lane, const Stream& stream, Deadline deadline);
    void written();  // what next() gave is with the system
    void wait_until_written(Deadline deadline);
    void end(const std::string& why);

  private:
    using Lanes = std::map<std::int32_t, Stream>;
    void spread_send_rate();
    Stream only_lane() const;
    bool is_waiting(const Stream& stream) const;

    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    Lanes lanes_;
    Incarnation process_;                   // that they lead to
    std::map<Incarnation, Lanes> waiting_;  // for the first lane of another process
    std::deque<OutgoingFrame> urgent_;
    std::deque<OutgoingFrame> bulk_;
    int being_written_ = 0;
    double send_rate_ = 0;
};

}  // namespace atl
