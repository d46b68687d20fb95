#include "exchange/round_stopwatch.h"

#include <utility>

namespace atl {

void RoundStopwatch::begin(Round round, TimePoint now) {
    cost_ = RoundCost{.round = round, .peers = {}};
    begin_ = now;
}

void RoundStopwatch::step(double step_seconds) {
    if (!cost_) return;
    cost_->step_seconds += step_seconds;
    ++cost_->inner_steps;
}

std::optional<RoundCost> RoundStopwatch::end(const RoundTraffic& traffic, TimePoint now) {
    std::optional<RoundCost> cost = std::exchange(cost_, std::nullopt);
    if (!cost || cost->inner_steps == 0 || cost->round != traffic.round) return {};
    cost->round_seconds = seconds(now - begin_);
    cost->exchange_seconds = traffic.seconds;
    for (const FragmentTraffic& fragment : traffic.fragments) cost->raw_bytes_sent += fragment.raw_bytes_sent;
    for (const PeerCounters& peer : traffic.peers) {
        cost->peers.push_back({peer.site, peer.payload_bytes_sent, peer.payload_bytes_received,
                               peer.wire_bytes_sent, peer.wire_bytes_received, peer.round_trip_seconds});
    }
    return cost;
}

}  // namespace atl
