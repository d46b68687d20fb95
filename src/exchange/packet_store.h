// The packets a site holds: its own, those it was sent, the means it made. What a commit was made of is kept until the
// next commit of its fragment, so that a late member can still ask: the means, or the contributions of a direct attempt.
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
    void discard_own_contributions(Round round, FragmentId first, SiteId self);  // from that fragment on
    // Everybody has the mean: only direct attempts' contributions are still asked for.
    void discard_contributions(Round round, FragmentId fragment);
    void forget_before(Round round, std::optional<FragmentId> fragment);  // of all fragments, or of this one
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
