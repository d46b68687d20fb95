#include "cli/paced_transport.h"

#include <algorithm>
#include <utility>

namespace atl::cli {
namespace {

constexpr Milliseconds kQueue{50};  // of the uplink: what is accepted ahead of its turn
constexpr std::int64_t kMostTravellingBytes = 64 << 20;
constexpr Milliseconds kAskAgain{1};  // a transport that has no credit

}  // namespace

PacedTransport::PacedTransport(std::unique_ptr<SiteTransport> transport, LinkRate rate, const Clock& clock)
    : transport_(std::move(transport)), rate_(rate), clock_(clock) {}

SendResult PacedTransport::send(Frame frame) {
    const bool paced = rate_.bits_per_second > 0;
    if (!paced && rate_.delay.count() == 0 && travelling_.empty()) return transport_->send(std::move(frame));
    const TimePoint now = clock_.now();
    deliver(now);
    if (is_full(now)) {
        refused_.insert(frame.to);
        return SendResult::no_credit;
    }
    const double transmission_s =
        paced ? 8 * static_cast<double>(frame.wire_bytes()) / rate_.bits_per_second : 0;
    free_ = std::max(free_, now) + std::chrono::nanoseconds(static_cast<std::int64_t>(transmission_s * 1e9));
    travelling_bytes_ += frame.wire_bytes();
    travelling_.push_back({std::move(frame), free_ + rate_.delay});
    return SendResult::accepted;
}

std::optional<TransportEvent> PacedTransport::poll(Deadline deadline) {
    while (true) {
        const TimePoint now = clock_.now();
        deliver(now);
        if (const auto site = writable(now))
            return PeerEvent{
                .kind = PeerEvent::Kind::writable, .site = *site, .incarnation = {}, .detail = {}};
        const TimePoint until = next_event(deadline);
        if (auto event = transport_->poll(until)) return event;
        // An interrupt ends the wait early; whoever polls looks for its cause.
        if (clock_.now() < until || until >= deadline) return {};
    }
}

std::int64_t PacedTransport::bytes_under_way(SiteId peer) const {
    std::int64_t bytes = transport_->bytes_under_way(peer);
    for (const Travelling& each : travelling_)
        if (each.frame.to == peer) bytes += each.frame.wire_bytes();
    return bytes;
}

bool PacedTransport::is_full(TimePoint now) const {
    return free_ > now + kQueue || travelling_bytes_ >= kMostTravellingBytes;
}

// Frames to a peer that is not connected are lost, as they are on any link.
void PacedTransport::deliver(TimePoint now) {
    while (!travelling_.empty() && travelling_.front().arrives <= now) {
        if (transport_->send(travelling_.front().frame) == SendResult::no_credit) {
            travelling_.front().arrives = now + kAskAgain;
            return;
        }
        travelling_bytes_ -= travelling_.front().frame.wire_bytes();
        travelling_.pop_front();
    }
}

std::optional<SiteId> PacedTransport::writable(TimePoint now) {
    if (refused_.empty() || is_full(now)) return {};
    const SiteId site = *refused_.begin();
    refused_.erase(refused_.begin());
    return site;
}

TimePoint PacedTransport::next_event(Deadline deadline) const {
    TimePoint next = deadline;
    if (!travelling_.empty()) next = std::min(next, travelling_.front().arrives);
    if (!refused_.empty() && travelling_bytes_ < kMostTravellingBytes) next = std::min(next, free_ - kQueue);
    return next;
}

}  // namespace atl::cli
