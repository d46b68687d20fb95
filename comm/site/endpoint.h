// Endpoint: what every SiteTransport does alike, without a wire: hello and credit between two sides, the
// incarnation checks, bounded sending, the queue of events, the counters. A transport feeds it what arrives and
// puts on its wire what lies in the outbox.
//
// Threads: every call from any thread; the wake-up runs on the calling thread, outside the lock.
// Cost: one lock per call; one XXH3 pass over a body when it is sent first and one when it is received.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

#include "comm/site/transport.h"

namespace atl {

class FrameStream;

// A frame ready for the wire.
struct OutgoingFrame {
    SiteId to;
    FrameKind kind = FrameKind::control;
    std::vector<std::byte> head;
    Payload body;
    const FrameStream* taken_by = nullptr;  // has the body already, as `place`, and must write the frame
    std::uint32_t place = 0;

    std::int64_t wire_bytes() const { return static_cast<std::int64_t>(head.size() + body.size()); }
};

class Endpoint {
  public:
    // `wake_wire` is called whenever the outbox was empty and no longer is. With `most_unwritten_bytes` a send finds no
    // credit while so many bytes for the peer were not written() yet: on a slow link they wait with the sender, who may
    // think better of them, and not here.
    Endpoint(TransportOptions options, std::function<void()> wake_wire,
             std::optional<std::int64_t> most_unwritten_bytes = {});

    const TransportOptions& options() const { return options_; }

    // For the user's side of a transport.
    void set_peers(const std::vector<Peer>& peers);
    SendResult send(Frame frame);
    std::optional<TransportEvent> take();  // without waiting
    // Until take() may find something, by the system's steady clock. True: interrupted.
    bool wait(Deadline deadline);
    void interrupt();  // the wait under way, or else the next, ends at once
    std::vector<PeerCounters> counters() const;
    std::int64_t bytes_unwritten(SiteId site) const;  // 0 without a limit for them

    // For the wire's side. `from` is who the wire believes the sender to be (for reports of corruption).
    void receive(SiteId from, std::span<const std::byte> head, Payload body);
    void disconnected(SiteId site, const std::string& why);
    void refund(SiteId site, std::int64_t wire_bytes);  // a wire that may lose frames gives their credit back
    void written(SiteId site, std::int64_t wire_bytes);  // the system has taken them
    void say_goodbye();
    // Puts the hellos that are due into the outbox; returns when to call again.
    TimePoint tick(TimePoint now);
    std::deque<OutgoingFrame> drain_outbox();

  private:
    struct Link {
        Peer peer;  // incarnation: the one listed, or the one that said hello
        bool any_incarnation = false;
        Incarnation left;  // said goodbye: a hello of it that comes later was overtaken
        bool is_up = false;
        bool was_refused_credit = false;
        std::uint64_t nonce = 1;       // of this side's view of the connection
        std::uint64_t peer_nonce = 0;  // 0: not heard of
        std::int64_t bytes_sent = 0;   // since the connection began
        std::int64_t bytes_granted = 0;
        std::int64_t bytes_unwritten = 0;  // kept only with a limit for it
        std::int64_t bytes_taken = 0;      // from the peer, out of the inbox
        std::int64_t bytes_granted_to_peer = 0;
        TimePoint next_hello{};
        std::chrono::milliseconds hello_interval{0};
    };
    struct Hello {
        std::uint64_t nonce;
        std::uint64_t echo;
        std::int64_t window_bytes;
        std::uint64_t sender_is_up;
    };

    void accept(Frame frame);
    void accept_hello(const Frame& frame);
    void accept_credit(Link& link, const Frame& frame);
    void take_down(Link& link, const std::string& why);
    void bring_up(Link& link);
    void post(Link& link, Frame frame);
    void post_hello(Link& link);
    bool has_credit(const Link& link, std::int64_t wire_bytes) const;
    void say_writable(Link& link);
    void grant_credit(Link& link, std::int64_t wire_bytes);
    void push_event(PeerEvent event);
    PeerCounters& counters_of(SiteId site);
    Link* find(SiteId site);

    const TransportOptions options_;
    const std::uint64_t run_;
    const std::function<void()> wake_wire_;
    const std::optional<std::int64_t> most_unwritten_bytes_;

    mutable std::mutex mutex_;  // guards everything below
    std::condition_variable inbox_filled_;
    std::map<SiteId, Link> links_;
    std::map<SiteId, PeerCounters> counters_;
    bool is_interrupted_ = false;
    std::deque<TransportEvent> inbox_;
    std::deque<OutgoingFrame> outbox_;
};

}  // namespace atl
