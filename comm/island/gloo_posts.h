// Transfers on their way to Gloo: they are handed to it by its own thread; internal to this folder.
//
// Why: Gloo's thread skips a connection that another thread has locked and asks the kernel about it again at once. On
// the processor that both share it so keeps the lock's holder from running, until the scheduler has had enough of it: a
// millisecond for each transfer. Where only Gloo's thread touches connections, it never meets a lock.
// Threads: all calls from any thread; on_failure comes from Gloo's. Cost: one wake-up of Gloo's thread per flush.
#pragma once

#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "comm/island/ring.h"
#include "comm/island/socket.h"

namespace atl {

struct GlooPost {
    enum class Kind : std::uint8_t { send, receive };
    Kind kind = Kind::send;
    gloo::transport::UnboundBuffer* buffer = nullptr;  // lives until the transfer is over, forget() or stop()
    int peer = 0;
    std::uint64_t slot = 0;
    RingChunk bytes;
};

class GlooPosts final : private gloo::transport::tcp::Handler {
  public:
    using OnFailure = std::function<void(int peer, const std::string& reason)>;

    GlooPosts(std::shared_ptr<gloo::transport::tcp::Device> device, OnFailure on_failure);
    ~GlooPosts() override;
    GlooPosts(const GlooPosts&) = delete;
    GlooPosts& operator=(const GlooPosts&) = delete;

    void add(const GlooPost& post);
    void flush();  // what was added so far is handed over soon, in the order in which it was added
    void forget(gloo::transport::UnboundBuffer* buffer);  // what has not been handed over of its posts never will be
    void stop();   // the same of all posts, and nothing added later is

  private:
    void handleEvents(int events) override;
    void hand_over(const GlooPost& post);

    std::shared_ptr<gloo::transport::tcp::Device> device_;
    OnFailure on_failure_;
    Socket wake_;       // an eventfd
    std::mutex mutex_;  // guards what follows, and is held while a post is handed over
    std::deque<GlooPost> waiting_;
    bool stopped_ = false;
};

}  // namespace atl
