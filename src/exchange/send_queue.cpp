#include "exchange/send_queue.h"

#include <algorithm>

#include "exchange/wire.h"

namespace atl {

void SendQueue::add(const PacketKey& key, const std::vector<SiteId>& to) {
    for (const SiteId peer : to) {
        Waiting& waiting = peers_[peer];
        if (waiting.known.insert(key).second) waiting.keys.push_back(key);
    }
}

void SendQueue::keep_only(const std::set<SiteId>& peers) {
    std::erase_if(peers_, [&](const auto& entry) { return !peers.contains(entry.first); });
}

std::size_t SendQueue::shortest() const {
    if (peers_.empty()) return 0;
    return std::ranges::min_element(peers_, {}, [](const auto& entry) { return entry.second.keys.size(); })
        ->second.keys.size();
}

bool SendQueue::pump(const PacketStore& store, SiteTransport& transport, TrafficCount& count) {
    bool sent_any = false;
    for (bool sent = true; sent;) {
        sent = false;
        for (auto& [peer, waiting] : peers_) sent = send_next(peer, waiting, store, transport, count) || sent;
        sent_any = sent_any || sent;
    }
    return sent_any;
}

bool SendQueue::send_next(SiteId peer, Waiting& waiting, const PacketStore& store, SiteTransport& transport,
                          TrafficCount& count) {
    while (!waiting.keys.empty()) {
        const PacketKey key = waiting.keys.front();
        const Packet* packet = store.find(key);
        if (packet != nullptr) {
            if (transport.send(packet_frame(key, *packet, peer)) != SendResult::accepted) return false;
            count.sent(key, *packet);
        }
        waiting.keys.pop_front();
        waiting.known.erase(key);
        if (packet != nullptr) return true;  // else it was discarded meanwhile
    }
    return false;
}

}  // namespace atl
