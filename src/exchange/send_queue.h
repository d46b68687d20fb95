// Which packets are still to be sent to whom. Only keys wait here, each once per peer; the bytes are looked up
// when a peer has credit, so a slow peer costs a list of keys and nobody else's time. What is on its way is not sent
// again, however often it is asked for: it arrives, or the connection is lost.
//
// Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "comm/site/transport.h"
#include "exchange/packet_store.h"
#include "exchange/traffic.h"
#include "exchange/uplink_meter.h"

namespace atl {

class SendQueue {
  public:
    void add(const PacketKey& key, const std::vector<SiteId>& to);
    void keep_only(const std::set<SiteId>& peers);  // whoever left is owed nothing
    void connection_lost(SiteId peer);              // and what was under way to it
    // Looks what has arrived meanwhile, and may be asked for again a little later: a request that was under way when it
    // arrived is none.
    void settle(SiteTransport& transport, TimePoint now);
    double send_bytes_per_second() const {
        return meter_.bytes_per_second();
    }  // to all peers; 0: not measured
    // How many packets wait for the peer that has the fewest; 0 without peers.
    std::size_t shortest() const;
    // One packet to each peer in turn until nobody takes any more. True if anything was sent.
    bool pump(const PacketStore& store, SiteTransport& transport, TrafficCount& count);

  private:
    struct UnderWay {
        PacketKey key;
        std::int64_t end = 0;  // bytes sent on the connection with this packet's
    };
    struct Arrived {
        PacketKey key;
        TimePoint when{};
    };
    struct Peer {
        std::deque<PacketKey> waiting;
        std::deque<UnderWay> under_way;
        std::deque<Arrived> arrived;
        std::set<PacketKey> known;       // in any of the three
        std::int64_t sent_bytes = 0;     // of packets, on the connection of now
        std::int64_t arrived_bytes = 0;  // of those
    };
    void pace(SiteTransport& transport, std::size_t busy);
    // The first that is still in the store. False: there is none, or it can't be sent now.
    bool send_next(SiteId to, Peer& peer, const PacketStore& store, SiteTransport& transport,
                   TrafficCount& count);

    std::map<SiteId, Peer> peers_;
    std::int64_t arrived_bytes_ = 0;  // at all peers, of all connections
    UplinkMeter meter_;
    double paced_ = 0;            // bytes per second to each peer; 0: as fast as it goes
    std::int64_t exchanges_ = 0;  // begun: times that something was on its way after nothing had been
    bool is_busy_ = false;
};

}  // namespace atl
