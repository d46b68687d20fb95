// One TCP connection between two sites: who is at its other end, then frames one after another (FORMAT.md).
//
// Threads: one reads, one writes, any may call end(). Errors: an optional or false: the connection could not be made,
// has ended, was silent for too long or carries what is no frame; why() says which. Nothing here blocks beyond
// `silence` without a sign of life from the other side, except a write, which end() ends.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/site/endpoint.h"
#include "core/buffer_pool.h"

namespace atl {

// What each side says first.
struct StreamOpening {
    SiteId site;
    std::int32_t lane = 0;  // which of several connections between the two
};

class TcpStream {
  public:
    explicit TcpStream(int descriptor) : descriptor_(descriptor) {}
    ~TcpStream();
    TcpStream(const TcpStream&) = delete;
    TcpStream& operator=(const TcpStream&) = delete;

    // Sends the own opening and waits for the peer's.
    std::optional<StreamOpening> open(const StreamOpening& own, Milliseconds silence);

    struct Arrived {
        std::vector<std::byte> head;
        Payload body;
    };
    // The next frame; signs of life are skipped. `longest`: of a body.
    std::optional<Arrived> read(BufferPool& pool, std::int64_t longest);
    bool write(const OutgoingFrame& frame);
    bool write_sign_of_life();

    // The shortest that the system has seen on this connection; 0 if it does not say.
    double round_trip_seconds() const;

    void end(const std::string& why);  // reading and writing fail from now on
    std::string why() const;

  private:
    bool receive(std::span<std::byte> bytes);
    bool send(std::span<const std::byte> first, std::span<const std::byte> second);

    const int descriptor_;
    mutable std::mutex mutex_;
    std::string why_;  // guarded by mutex_; the first reason
};

// A connection to "host:port"; nothing if there is none within the patience or `stop` turns true.
std::unique_ptr<TcpStream> dial_tcp(const std::string& address, Milliseconds patience,
                                    const std::atomic<bool>& stop);

// A socket that listens on "host:port".
class TcpListener {
  public:
    explicit TcpListener(const std::string& address);  // throws UserError
    ~TcpListener();
    TcpListener(const TcpListener&) = delete;
    TcpListener& operator=(const TcpListener&) = delete;

    int descriptor() const { return descriptor_; }  // readable when somebody has come
    const std::string& address() const { return address_; }
    std::unique_ptr<TcpStream> accept() const;  // nothing if nobody has come after all

  private:
    int descriptor_ = -1;
    std::string address_;  // with the port that was chosen
};

}  // namespace atl
