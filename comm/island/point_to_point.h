// PointToPoint: messages between two ranks of a group that are posted now and waited for later.
//
// Matching: the n-th send from a to b meets the n-th receive at b from a; both have the same number of bytes. Any
// number may be posted ahead, in any order among peers, and no post waits for anything; messages of one pair arrive in
// order. A wait is for the oldest message of its kind and peer that has not been waited for. A message may be empty.
// Buffers: the caller's, from the post until the wait for it has returned: a send's must not change, a receive's must
// not be touched.
// Errors: CommError naming peer, operation and the time waited. After an error the object can't be used again: every
// later call throws the first error's text.
// Threads: any number, on condition that posts of one kind come from one thread and waits of one kind from one thread
// each; give_up() from any.
#pragma once

#include <cstdint>
#include <string>

#include "core/buffer_view.h"
#include "core/clock.h"
#include "core/ids.h"

namespace atl {

class PointToPoint {
  public:
    virtual ~PointToPoint() = default;

    virtual Rank rank() const = 0;
    virtual std::int32_t size() const = 0;

    virtual void post_send(BufferView values, Rank peer) = 0;
    virtual void post_receive(BufferView values, Rank peer) = 0;
    // Until the buffer may be written again, and until it holds what was sent. The timeout counts from this call.
    virtual void wait_send(Rank peer, Milliseconds timeout) = 0;
    virtual void wait_receive(Rank peer, Milliseconds timeout) = 0;

    // As IslandCollective::give_up.
    virtual void give_up(const std::string& why) = 0;
};

}  // namespace atl
