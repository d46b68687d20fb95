// The packets a site holds: its own, those it was sent, the means it made. Kept until the round after the next
// begins, so that a late member can still ask.
//
// A contribution is one whatever attempt it travelled under; a mean belongs to its attempt. Not thread-safe.
// Memory: the bodies, shared with send queues and, for fp32, with the Δ they are views of.
#pragma once

#include <map>
#include <optional>

#include "codec/packet.h"
#include "rounds/site_events.h"

namespace atl {

class PacketStore {
  public:
    // The packet that stood under the key before, if any.
    std::optional<Packet> keep(const PacketKey& key, Packet packet);
    void erase(const PacketKey& key) { packets_.erase(identity(key)); }
    const Packet* find(const PacketKey& key) const;

    void discard_received(const site_action::DiscardPackets& discard, SiteId self);
    void discard_own_contributions(Round round, SiteId self);
    void forget_before(Round round);
    std::int64_t bytes() const;

  private:
    struct Stored {
        Packet packet;
        Attempt attempt;  // it came under
    };
    static PacketKey identity(PacketKey key);

    std::map<PacketKey, Stored> packets_;
};

}  // namespace atl
