// Connections between each two processes of a group, on Debian's Gloo, and the waits for what goes over them. What the
// collectives and the point-to-point messages over Gloo have in common; internal to this folder.
//
// A wait ends when the transfer is done, at its deadline, or as soon as a rank is known to be lost
// (comm/island/lifelines.h). The first failure ends the mesh for good: all waits throw it, and the peers are told.
// Threads: any; Gloo runs one per mesh, and the lifelines another.
#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/island/gloo_collective.h"
#include "comm/island/gloo_posts.h"
#include "comm/island/lifelines.h"
#include "comm/island/ring.h"

namespace atl {

// Takes its posts along that Gloo's thread has not seen yet, however the call that owned it ends.
struct ForgetPosts {
    GlooPosts* posts = nullptr;
    void operator()(gloo::transport::UnboundBuffer* buffer) const;
};
using UnboundBuffer = std::unique_ptr<gloo::transport::UnboundBuffer, ForgetPosts>;

// What is being done, for errors, and until when.
struct MeshCall {
    const char* operation = "";
    Milliseconds timeout{0};
    Deadline deadline;
    std::uint64_t slot = 0;  // Gloo's name of the call's transfers: the same on both ends
};

class GlooMesh {
  public:
    GlooMesh(const GlooOptions& options, Rendezvous& rendezvous);

    int rank() const { return rank_; }
    int size() const { return size_; }
    std::vector<int> peers() const;  // all ranks but this one

    // Throws the first failure, if there was one.
    MeshCall begin(const char* operation, Milliseconds timeout, std::uint64_t slot);
    // The same for what all ranks take part in: the n-th such call has slot n, and fails once any rank has left.
    MeshCall begin_with_all(const char* operation, Milliseconds timeout);

    // The steps of a transfer. Transfers on one buffer to, or from, one peer are done in order, and each wait is for
    // the next of them. They begin at the next flush, which is part of each wait. A buffer ends before the mesh.
    UnboundBuffer buffer_over(void* data, std::int64_t bytes);
    void send(const MeshCall& call, UnboundBuffer& buffer, int peer, RingChunk bytes);
    void receive(const MeshCall& call, UnboundBuffer& buffer, int peer, RingChunk bytes);
    void flush();
    void wait_sent(const MeshCall& call, UnboundBuffer& buffer, int peer);
    void wait_received(const MeshCall& call, UnboundBuffer& buffer, int peer);

    void give_up(const std::string& why);

    // For Gloo's own algorithms over the same connections.
    const std::shared_ptr<gloo::transport::Device>& device() const { return device_; }
    const std::shared_ptr<gloo::transport::Context>& context() const { return context_; }

  private:
    void connect(Rendezvous& rendezvous);
    void notice(const Departure& departure);
    void notice_failed_post(int peer, const std::string& reason);
    template <class Wait>
    void wait(const MeshCall& call, UnboundBuffer& buffer, int peer, Wait wait_for);
    [[noreturn]] void fail(const MeshCall& call, int peer, const std::string& reason);
    void end(std::string failure);

    GlooOptions options_;
    int rank_;
    int size_;
    std::uint64_t calls_with_all_ = 0;
    SystemClock clock_;
    std::shared_ptr<gloo::transport::Device> device_;    // shared with Gloo's own objects
    std::shared_ptr<gloo::transport::Context> context_;  // likewise
    std::mutex mutex_;                                   // guards what follows
    std::condition_variable lost_changed_;
    std::optional<Departure> lost_;
    std::optional<std::int32_t> done_peer_;
    std::string failure_;
    std::string failed_post_;  // why a transfer could not begin
    std::set<gloo::transport::UnboundBuffer*> awaited_;
    std::unique_ptr<GlooPosts> posts_;      // before the connections end
    std::unique_ptr<Lifelines> lifelines_;  // last, so that its thread ends first
};

}  // namespace atl
