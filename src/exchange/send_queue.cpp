#include "exchange/send_queue.h"

#include <algorithm>
#include <utility>

#include "exchange/wire.h"

namespace atl {

namespace {

// Requests wait behind what their senders send, and those that are meant come only after a longer silence (SiteOptions).
constexpr Milliseconds kRequestsTravel{400};
constexpr double kHeadroom = 1.1;
// Every so many exchanges one goes as fast as it can, to see what a link has come to carry.
constexpr std::int64_t kUnpaced = 32;
// Beyond 1 Gbit/s queues are short in time, and pacing costs the processor more than it spares the link.
constexpr double kFastest = 125e6;

}  // namespace

void SendQueue::add(const PacketKey& key, const std::vector<SiteId>& to) {
    for (const SiteId site : to) {
        Peer& peer = peers_[site];
        if (peer.known.insert(key).second) peer.waiting.push_back(key);
    }
}

void SendQueue::keep_only(const std::set<SiteId>& peers) {
    std::erase_if(peers_, [&](const auto& entry) { return !peers.contains(entry.first); });
}

void SendQueue::connection_lost(SiteId site) {
    const auto found = peers_.find(site);
    if (found == peers_.end()) return;
    Peer& peer = found->second;
    for (const UnderWay& packet : peer.under_way) peer.known.erase(packet.key);
    for (const Arrived& packet : peer.arrived) peer.known.erase(packet.key);
    peer.under_way.clear();
    peer.arrived.clear();
    peer.sent_bytes = 0;
    peer.arrived_bytes = 0;
}

void SendQueue::settle(SiteTransport& transport, TimePoint now) {
    std::size_t busy = 0;
    for (auto& [site, peer] : peers_) {
        for (; !peer.arrived.empty() && peer.arrived.front().when + kRequestsTravel <= now;
             peer.arrived.pop_front())
            peer.known.erase(peer.arrived.front().key);
        if (peer.under_way.empty()) {
            busy += peer.waiting.empty() ? 0 : 1;
            continue;
        }
        const std::int64_t arrived =
            std::max(peer.arrived_bytes, peer.sent_bytes - transport.bytes_under_way(site));
        arrived_bytes_ += arrived - std::exchange(peer.arrived_bytes, arrived);
        for (; !peer.under_way.empty() && peer.under_way.front().end <= arrived; peer.under_way.pop_front())
            peer.arrived.push_back({peer.under_way.front().key, now});
        busy += peer.under_way.empty() && peer.waiting.empty() ? 0 : 1;
    }
    meter_.sample(arrived_bytes_, busy, now);
    pace(transport, busy);
}

// Connections that share a link take uneven parts of it, fill its queue and are slow to take what others leave. So each
// is held to its part of a little more than the link was seen to carry.
void SendQueue::pace(SiteTransport& transport, std::size_t busy) {
    if (busy > 0 && !is_busy_) ++exchanges_;
    is_busy_ = busy > 0;
    if (!is_busy_) return;
    const double rate = kHeadroom * meter_.bytes_per_second();
    const bool is_paced = peers_.size() > 1 && rate < kFastest && exchanges_ % kUnpaced != 0;
    const double part = is_paced ? rate / static_cast<double>(busy) : 0;
    if (part == paced_) return;
    paced_ = part;
    for (const auto& [site, peer] : peers_) transport.set_send_rate(site, part);
}

std::size_t SendQueue::shortest() const {
    if (peers_.empty()) return 0;
    return std::ranges::min_element(peers_, {}, [](const auto& entry) { return entry.second.waiting.size(); })
        ->second.waiting.size();
}

bool SendQueue::pump(const PacketStore& store, SiteTransport& transport, TrafficCount& count) {
    bool sent_any = false;
    for (bool sent = true; sent;) {
        sent = false;
        for (auto& [site, peer] : peers_) sent = send_next(site, peer, store, transport, count) || sent;
        sent_any = sent_any || sent;
    }
    return sent_any;
}

bool SendQueue::send_next(SiteId to, Peer& peer, const PacketStore& store, SiteTransport& transport,
                          TrafficCount& count) {
    while (!peer.waiting.empty()) {
        const PacketKey key = peer.waiting.front();
        const Packet* packet = store.find(key);
        if (packet == nullptr) {  // it was discarded meanwhile
            peer.waiting.pop_front();
            peer.known.erase(key);
            continue;
        }
        Frame frame = packet_frame(key, *packet, to);
        const std::int64_t bytes = frame.wire_bytes();
        if (transport.send(std::move(frame)) != SendResult::accepted) return false;
        count.sent(key, *packet);
        peer.waiting.pop_front();
        peer.sent_bytes += bytes;
        peer.under_way.push_back({key, peer.sent_bytes});
        return true;
    }
    return false;
}

}  // namespace atl
