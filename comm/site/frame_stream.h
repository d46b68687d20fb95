// A connection between two sites that carries frames one after another (FORMAT.md), whatever carries its bytes.
//
// Threads: one reads, one writes, any may call end(). Errors: an optional or false: the connection has ended, was silent
// for too long or carries what is no frame; why() says which.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/site/endpoint.h"
#include "core/buffer_pool.h"

namespace atl {

class FrameStream {
  public:
    virtual ~FrameStream() = default;

    struct Arrived {
        std::vector<std::byte> head;
        Payload body;
    };
    // The next frame; signs of life are skipped. `longest`: of a body.
    std::optional<Arrived> read(BufferPool& pool, std::int64_t longest);
    virtual bool write(const OutgoingFrame& frame);
    // Called by whoever adds a frame that will go out here, one at a time: a stream may take the body at once, while it is
    // in that thread's cache, and say so in the frame.
    virtual void take_body(OutgoingFrame& /*frame*/) {}
    bool write_sign_of_life();

    // The bytes that a frame is made of. All of them, or false and why().
    virtual bool receive(std::span<std::byte> bytes) = 0;
    virtual std::optional<Payload> receive_body(BufferPool& pool, std::size_t bytes);  // of a frame, after its head
    virtual bool send(std::span<const std::byte> first, std::span<const std::byte> second) = 0;

    virtual bool shares_memory() const { return false; }  // bodies don't go over a network
    // The shortest that was seen on this connection; 0: not known.
    virtual double round_trip_seconds() const = 0;
    // Of what send() has taken: not yet acknowledged by the peer's host. 0 if that can't be known.
    virtual std::int64_t unacknowledged_bytes() const = 0;
    virtual void set_send_rate(double /*bytes_per_second*/) {}  // 0: no limit
    virtual void end(const std::string& why) = 0;               // reading and writing fail from now on
    virtual std::string why() const = 0;                        // the first reason; empty: it has not ended
};

}  // namespace atl
