// One TCP connection between two sites: who is at its other end, then frames one after another (FORMAT.md).
//
// Threads and errors: as FrameStream says; a connection that could not be made is none. Nothing here blocks beyond
// `silence` without a sign of life from the other side, except a write, which end() ends.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/site/frame_stream.h"

namespace atl {

// What each side says first.
struct StreamOpening {
    SiteId site;
    std::int32_t lane = 0;  // which of several connections between the two
    Incarnation incarnation;
    bool shares_memory = false;  // if the other side does so, too
};

// Since the connection was made.
struct TcpProgress {
    double busy_seconds = 0;  // with something to send
    double acknowledged_bytes = 0;
};
TcpProgress tcp_progress(int descriptor);

class TcpStream final : public FrameStream {
  public:
    explicit TcpStream(int descriptor) : descriptor_(descriptor) {}
    ~TcpStream() override;
    TcpStream(const TcpStream&) = delete;
    TcpStream& operator=(const TcpStream&) = delete;

    // Sends the own opening and waits for the peer's.
    std::optional<StreamOpening> open(const StreamOpening& own, Milliseconds silence);

    bool receive(std::span<std::byte> bytes) override;
    bool send(std::span<const std::byte> first, std::span<const std::byte> second) override;
    double round_trip_seconds() const override;
    std::int64_t unacknowledged_bytes() const override;
    void set_send_rate(double bytes_per_second) override;
    void end(const std::string& why) override;
    std::string why() const override;
    std::string local_host() const;  // this end's address: no port, no brackets
    bool leads_to_own_host() const;   // both ends have one address, unless something stands between them

  private:
    std::optional<std::size_t> receive_some(std::span<std::byte> bytes, int flags);

    const int descriptor_;
    // What came with the bytes that were asked for: heads take one call in place of several. Of the thread that reads.
    std::array<std::byte, 8192> ahead_;
    std::span<std::byte> unread_;
    mutable std::mutex mutex_;
    std::string why_;            // guarded by mutex_; the first reason
    TcpProgress limited_since_;  // these four: of the thread that sets the rate
    double rate_ = 0;            // 0: none
    double lowest_rate_ = 0;     // since it was last lowered
    bool keeps_rate_ = true;     // CUBIC has reached it so far
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
