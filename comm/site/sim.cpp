#include "comm/site/sim.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/site/endpoint.h"
#include "core/check.h"

namespace atl {

namespace {

std::chrono::nanoseconds transmission(std::int64_t bytes, double bytes_per_second) {
    if (bytes_per_second <= 0) return {};
    return std::chrono::nanoseconds(
        static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) / bytes_per_second));
}

}  // namespace

struct SimulatedNetwork::Delivery {
    TimePoint at;
    std::uint64_t order;  // of launching, so that ties are settled alike in every run
    bool is_copy;
    SiteId from;
    OutgoingFrame frame;
};

bool SimulatedNetwork::Later::operator()(const std::shared_ptr<Delivery>& a,
                                         const std::shared_ptr<Delivery>& b) const {
    return std::pair(a->at, a->order) > std::pair(b->at, b->order);
}

class SimulatedNetwork::Transport final : public SiteTransport {
  public:
    Transport(SimulatedNetwork& network, TransportOptions options)
        : network_(network), endpoint_(std::move(options), [this] { network_.collect(self()); }) {
        ATOLL_CHECK(network_.endpoints_.emplace(self(), &endpoint_).second, "site {} is here already",
                    self());
    }
    ~Transport() override { network_.leave(self()); }

    SiteId self() const override { return endpoint_.options().self; }
    Incarnation incarnation() const override { return endpoint_.options().incarnation; }
    std::string address() const override { return fmt::format("sim:{}", self()); }
    void set_peers(const std::vector<Peer>& peers) override {
        endpoint_.set_peers(peers);
        endpoint_.tick(network_.clock_.now());
    }
    SendResult send(Frame frame) override { return endpoint_.send(std::move(frame)); }
    std::optional<TransportEvent> poll(Deadline) override { return endpoint_.take(); }
    void interrupt() override {}  // no poll waits
    std::vector<PeerCounters> counters() const override { return endpoint_.counters(); }
    std::int64_t bytes_under_way(SiteId peer) const override {
        return network_.bytes_under_way(self(), peer);
    }

  private:
    SimulatedNetwork& network_;
    Endpoint endpoint_;
};

SimulatedNetwork::SimulatedNetwork(std::uint64_t seed, SimulatedLink link)
    : random_(seed, "simulated network"), default_link_(link) {}
SimulatedNetwork::~SimulatedNetwork() = default;

void SimulatedNetwork::set_link(SiteId one, SiteId other, SimulatedLink link) {
    links_[std::minmax(one, other)] = link;
}

void SimulatedNetwork::set_uplink(SiteId site, double bytes_per_second) {
    uplinks_[site].bytes_per_second = bytes_per_second;
}

std::unique_ptr<SiteTransport> SimulatedNetwork::join(TransportOptions options) {
    return std::make_unique<Transport>(*this, std::move(options));
}

void SimulatedNetwork::leave(SiteId site) {
    endpoints_.erase(site);
    for (auto& [pair, direction] : directions_) {
        if (pair.first != site) continue;
        direction.bytes = 0;
        direction.acknowledgements.clear();
    }
    if (const auto uplink = uplinks_.find(site); uplink != uplinks_.end()) uplink->second.waiting.clear();
    for (const auto& [other, endpoint] : endpoints_) {
        if (!cuts_.contains(std::minmax(site, other))) tell(other, site, "the peer is gone");
    }
}

void SimulatedNetwork::cut(SiteId one, SiteId other, bool is_silent) {
    cuts_.insert(std::minmax(one, other));
    if (is_silent) return;
    tell(one, other, "the link is cut");
    tell(other, one, "the link is cut");
}

void SimulatedNetwork::heal(SiteId one, SiteId other) {
    cuts_.erase(std::minmax(one, other));
}

void SimulatedNetwork::tell(SiteId site, SiteId about, const std::string& why) {
    const auto found = endpoints_.find(site);
    if (found != endpoints_.end()) found->second->disconnected(about, why);
}

const SimulatedLink& SimulatedNetwork::link(SiteId one, SiteId other) const {
    const auto found = links_.find(std::minmax(one, other));
    return found == links_.end() ? default_link_ : found->second;
}

void SimulatedNetwork::collect(SiteId from) {
    const auto found = endpoints_.find(from);
    if (found == endpoints_.end()) return;
    const auto uplink = uplinks_.find(from);
    for (OutgoingFrame& frame : found->second->drain_outbox()) {
        directions_[{from, frame.to}].bytes += frame.wire_bytes();
        if (uplink == uplinks_.end()) {
            launch(from, std::move(frame), clock_.now());
        } else {
            uplink->second.waiting[frame.to].push_back(std::move(frame));
        }
    }
    if (uplink != uplinks_.end()) serve_uplink(from, uplink->second);
}

void SimulatedNetwork::serve_uplink(SiteId from, Uplink& uplink) {
    while (!uplink.waiting.empty() && uplink.free_at <= clock_.now()) {
        auto next = uplink.waiting.upper_bound(uplink.served);
        if (next == uplink.waiting.end()) next = uplink.waiting.begin();
        uplink.served = next->first;
        OutgoingFrame frame = std::move(next->second.front());
        next->second.pop_front();
        if (next->second.empty()) uplink.waiting.erase(next);
        uplink.free_at = std::max(uplink.free_at, clock_.now()) +
                         transmission(frame.wire_bytes(), uplink.bytes_per_second);
        launch(from, std::move(frame), uplink.free_at);
    }
}

void SimulatedNetwork::launch(SiteId from, OutgoingFrame frame, TimePoint leaves) {
    const SimulatedLink& wire = link(from, frame.to);
    const bool is_credit = frame.kind == FrameKind::credit;
    Direction& direction = directions_[{from, frame.to}];
    const TimePoint sent =
        std::max(leaves, direction.free_at) + transmission(frame.wire_bytes(), wire.bytes_per_second);
    direction.free_at = sent;

    const bool is_lost = cuts_.contains(std::minmax(from, frame.to)) || (!is_credit && chance() < wire.loss);
    if (is_lost) {
        direction.bytes -= frame.wire_bytes();
        if (frame.kind >= FrameKind::control) endpoints_.at(from)->refund(frame.to, frame.wire_bytes());
        return;
    }
    const int copies = !is_credit && chance() < wire.duplication ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
        const auto spread = static_cast<double>((wire.most_delay - wire.least_delay).count());
        TimePoint at =
            sent + wire.least_delay + std::chrono::nanoseconds(static_cast<std::int64_t>(chance() * spread));
        if (chance() >= wire.reordering) at = std::max(at, direction.last_arrival);
        direction.last_arrival = std::max(direction.last_arrival, at);
        auto delivery = std::make_shared<Delivery>(Delivery{at, launches_++, copy > 0, from, frame});
        if (!is_credit && chance() < wire.corruption) {
            auto& head = delivery->frame.head;
            head[random_.below(draws_++, head.size())] ^= std::byte{0x10};
        }
        under_way_.push(std::move(delivery));
    }
}

void SimulatedNetwork::deliver(Delivery& delivery) {
    Direction& direction = directions_[{delivery.from, delivery.frame.to}];
    if (!delivery.is_copy) {
        direction.acknowledgements.emplace_back(clock_.now() + link(delivery.from, delivery.frame.to).least_delay,
                                                delivery.frame.wire_bytes());
    }
    const auto found = endpoints_.find(delivery.frame.to);
    const bool is_cut = cuts_.contains(std::minmax(delivery.from, delivery.frame.to));
    if (found == endpoints_.end() || is_cut) return;
    found->second->receive(delivery.from, delivery.frame.head, delivery.frame.body);
}

// What an earlier life of the sender had under way may be acknowledged to this one.
std::int64_t SimulatedNetwork::bytes_under_way(SiteId from, SiteId to) {
    Direction& direction = directions_[{from, to}];
    auto& due = direction.acknowledgements;
    for (; !due.empty() && due.front().first <= clock_.now(); due.pop_front())
        direction.bytes = std::max<std::int64_t>(0, direction.bytes - due.front().second);
    return direction.bytes;
}

void SimulatedNetwork::advance(TimePoint limit) {
    TimePoint next = limit;
    for (const auto& [site, endpoint] : endpoints_) next = std::min(next, endpoint->tick(clock_.now()));
    if (!under_way_.empty()) next = std::min(next, under_way_.top()->at);
    for (const auto& [site, uplink] : uplinks_)
        if (!uplink.waiting.empty()) next = std::min(next, uplink.free_at);
    clock_.advance_to(next);
    for (auto& [site, uplink] : uplinks_)
        if (endpoints_.contains(site)) serve_uplink(site, uplink);
    for (const auto& [site, endpoint] : endpoints_) endpoint->tick(clock_.now());
    while (!under_way_.empty() && under_way_.top()->at <= clock_.now()) {
        const auto delivery = under_way_.top();
        under_way_.pop();
        deliver(*delivery);
    }
}

}  // namespace atl
