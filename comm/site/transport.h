// SiteTransport: frames between sites over slow links that fail. Bounded: a sender may have no more bytes
// under way to a peer than that peer has granted. Order holds per pair while a connection lives; a lost
// connection may lose frames, so whoever needs them asks again.
//
// A peer is known by (site, incarnation): frames of or for another incarnation are dropped, so nothing that
// was queued for a dead process reaches its successor. A frame whose checksum fails is counted and reported,
// never delivered.
//
// Threads: send, poll, set_peers and counters from one thread at a time each; they may be different threads.
// Errors: a bind that fails throws UserError (the address is the user's); all that peers do is an event or a
// counter. Cost: see Frame::wire_bytes; credit and hello frames add less than 0.1 %.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "comm/site/frame.h"
#include "core/clock.h"
#include "core/ids.h"

namespace atl {

struct Peer {
    SiteId site;
    Incarnation incarnation;  // 0: take whichever says hello, and follow it when it restarts
    std::string address;      // "host:port"; empty: it can't be dialled and dials us
};

struct PeerEvent {
    enum class Kind {
        connected,  // both sides know each other; also after a reconnection: frames may have been lost before
        lost,       // the connection broke or went silent; the transport keeps trying
        writable,   // a send that found no credit may be tried again
        corrupt,    // a frame was dropped; `detail` says why
    };
    Kind kind = Kind::connected;
    SiteId site;
    Incarnation incarnation;
    std::string detail;
};

using TransportEvent = std::variant<Frame, PeerEvent>;

enum class SendResult {
    accepted,
    no_credit,  // the peer's window is full: a `writable` event follows
    not_connected,
};

// Bytes and frames since the transport began, per site (all its incarnations). Payload = bodies and prefixes
// of frames other than the transport's own; wire = everything handed to or got from the network.
struct PeerCounters {
    SiteId site;
    std::int64_t payload_bytes_sent = 0;
    std::int64_t payload_bytes_received = 0;
    std::int64_t wire_bytes_sent = 0;
    std::int64_t wire_bytes_received = 0;
    std::int64_t frames_corrupt = 0;
    std::int64_t frames_stale = 0;  // of or for another incarnation, run or connection
    double round_trip_seconds = 0;  // the shortest on the connection of now; 0: not known
    bool shares_memory = false;     // likewise: bodies go through memory that both see, inside a host
};

class SiteTransport {
  public:
    virtual ~SiteTransport() = default;

    virtual SiteId self() const = 0;
    virtual Incarnation incarnation() const = 0;
    virtual std::string address() const = 0;  // what others dial, with the port that was chosen

    // The whole set of peers from now on; connections to others close. Each pair makes one connection: the
    // higher site dials, unless only it has an address.
    virtual void set_peers(const std::vector<Peer>& peers) = 0;

    // Never blocks. Fills in from and the incarnations.
    virtual SendResult send(Frame frame) = 0;

    // The next frame or event, waiting for it until `deadline`; nothing when none came. Taking a frame grants
    // its sender new credit.
    virtual std::optional<TransportEvent> poll(Deadline deadline) = 0;

    // The poll under way, or else the next, ends at once. From any thread.
    virtual void interrupt() = 0;

    virtual std::vector<PeerCounters> counters() const = 0;  // by site

    // Of the bytes of frames that send() has accepted for the peer on the connection of now: those not known to have
    // reached its host. They arrive, or the connection is lost. 0 where a transport can't know.
    virtual std::int64_t bytes_under_way(SiteId peer) const = 0;
    // From now on the peer is sent no more than this; 0: whatever the link takes. A hint: tcp alone heeds it.
    virtual void set_send_rate(SiteId, double /*bytes_per_second*/) {}
};

// What every implementation is told at birth.
struct TransportOptions {
    SiteId self;
    Incarnation incarnation;
    std::string run_id;
    std::int64_t window_bytes = 16 << 20;  // credit per peer; also the largest frame
    bool accept_unlisted = false;          // peers that say hello without being in the set (the coordinator)
};

}  // namespace atl
