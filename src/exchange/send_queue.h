// Which packets are still to be sent to whom. Only keys wait here, each once per peer; the bytes are looked up
// when a peer has credit, so a slow peer costs a list of keys and nobody else's time.
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

namespace atl {

class SendQueue {
  public:
    void add(const PacketKey& key, const std::vector<SiteId>& to);
    void keep_only(const std::set<SiteId>& peers);  // whoever left is owed nothing
    // How many packets wait for the peer that has the fewest; 0 without peers.
    std::size_t shortest() const;
    // One packet to each peer in turn until nobody takes any more. True if anything was sent.
    bool pump(const PacketStore& store, SiteTransport& transport, TrafficCount& count);

  private:
    struct Waiting {
        std::deque<PacketKey> keys;
        std::set<PacketKey> known;
    };
    // The first that is still in the store. False: there is none, or it can't be sent now.
    bool send_next(SiteId peer, Waiting& waiting, const PacketStore& store, SiteTransport& transport,
                   TrafficCount& count);

    std::map<SiteId, Waiting> peers_;
};

}  // namespace atl
