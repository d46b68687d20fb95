#include "exchange/packet_store.h"

namespace atl {

PacketKey PacketStore::identity(PacketKey key) {
    if (key.leg == Leg::contribution) key.attempt = Attempt();
    return key;
}

std::optional<Packet> PacketStore::keep(const PacketKey& key, Packet packet) {
    const auto [entry, is_new] = packets_.try_emplace(identity(key));
    std::optional<Packet> before;
    if (!is_new) before = std::move(entry->second.packet);
    entry->second = {std::move(packet), key.attempt};
    return before;
}

const Packet* PacketStore::find(const PacketKey& key) const {
    const auto found = packets_.find(identity(key));
    return found == packets_.end() ? nullptr : &found->second.packet;
}

void PacketStore::discard_received(const site_action::DiscardPackets& discard, SiteId self) {
    std::erase_if(packets_, [&](const auto& entry) {
        const PacketKey& key = entry.first;
        if (key.round != discard.round || key.fragment != discard.fragment) return false;
        if (key.leg == Leg::mean) return key.attempt < discard.means_before;
        return key.origin != self && entry.second.attempt < discard.contributions_before;
    });
}

void PacketStore::discard_own_contributions(Round round, FragmentId first, SiteId self) {
    std::erase_if(packets_, [&](const auto& entry) {
        const PacketKey& key = entry.first;
        return key.leg == Leg::contribution && key.round == round && key.fragment >= first &&
               key.origin == self;
    });
}

void PacketStore::discard_contributions(Round round, FragmentId fragment) {
    std::erase_if(packets_, [&](const auto& entry) {
        const PacketKey& key = entry.first;
        return key.leg == Leg::contribution && key.round == round && key.fragment == fragment;
    });
}

void PacketStore::forget_before(Round round, std::optional<FragmentId> fragment) {
    std::erase_if(packets_, [&](const auto& entry) {
        return entry.first.round < round && (!fragment || entry.first.fragment == *fragment);
    });
}

std::int64_t PacketStore::bytes() const {
    std::int64_t total = 0;
    for (const auto& [key, stored] : packets_) total += stored.packet.bytes();
    return total;
}

}  // namespace atl
