// Sites joined by simulated links in virtual time: delay, rate, loss, duplication, reordering, cuts and
// deaths, all a pure function of the seed and of the order of calls.
//
// One thread drives everything: let the sites work, then advance(). A transport's poll never waits: it returns
// what has arrived by the virtual now. A lost frame's credit goes back to its sender (on a real wire only a
// broken connection loses frames); credit frames themselves are never lost or doubled.
// Ownership: the network outlives its transports.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <set>

#include "comm/site/endpoint.h"
#include "core/random.h"

namespace atl {

class VirtualClock final : public Clock {
  public:
    TimePoint now() const override { return now_; }
    std::int64_t unix_ms() const override { return now_.time_since_epoch().count() / 1'000'000; }
    void advance_to(TimePoint time) { now_ = std::max(now_, time); }

  private:
    TimePoint now_{};
};

struct SimulatedLink {
    std::chrono::nanoseconds least_delay{1'000'000};
    std::chrono::nanoseconds most_delay{1'000'000};  // uniform between the two, per frame
    double bytes_per_second = 0;                     // each way; 0 = no limit
    double loss = 0;                                 // probabilities per frame
    double duplication = 0;
    double reordering = 0;  // of a frame that may overtake or be overtaken; otherwise order holds
    double corruption = 0;  // of one flipped bit
};

class SimulatedNetwork {
  public:
    explicit SimulatedNetwork(std::uint64_t seed, SimulatedLink link = {});
    ~SimulatedNetwork();

    VirtualClock& clock() { return clock_; }
    void set_link(SiteId one, SiteId other, SimulatedLink link);
    // All that a site sends leaves it one frame after another at this rate, the peers in turn: what connections that
    // share a link fairly come to.
    void set_uplink(SiteId site, double bytes_per_second);

    // A site's life begins here and ends with the transport; a later join is another life.
    std::unique_ptr<SiteTransport> join(TransportOptions options);

    // Silent: frames vanish, nobody is told. Not silent: both sides also see `lost`, as after a reset.
    void cut(SiteId one, SiteId other, bool is_silent);
    void heal(SiteId one, SiteId other);

    // Moves to the next arrival or hello, but not beyond `limit`, and delivers what is due then.
    void advance(TimePoint limit);

  private:
    class Transport;
    using Pair = std::pair<SiteId, SiteId>;
    struct Delivery;
    struct Later {
        bool operator()(const std::shared_ptr<Delivery>& a, const std::shared_ptr<Delivery>& b) const;
    };
    struct Uplink {
        double bytes_per_second = 0;
        TimePoint free_at{};                                  // when it can take the next byte
        std::map<SiteId, std::deque<OutgoingFrame>> waiting;  // by peer; no queue is empty
        SiteId served{-2};                                    // last
    };
    struct Direction {
        TimePoint free_at{};       // likewise
        TimePoint last_arrival{};  // order holds up to here
        std::int64_t bytes = 0;    // sent, and neither lost nor acknowledged
        std::deque<std::pair<TimePoint, std::int64_t>> acknowledgements;  // when they come, of how many bytes
    };

    void leave(SiteId site);
    void collect(SiteId from);
    void serve_uplink(SiteId from, Uplink& uplink);
    void launch(SiteId from, OutgoingFrame frame, TimePoint leaves);
    void deliver(Delivery& delivery);
    std::int64_t bytes_under_way(SiteId from, SiteId to);
    void tell(SiteId site, SiteId about, const std::string& why);
    const SimulatedLink& link(SiteId one, SiteId other) const;
    double chance() { return random_.uniform(draws_++); }

    VirtualClock clock_;
    RandomStream random_;
    std::uint64_t draws_ = 0;
    std::uint64_t launches_ = 0;
    SimulatedLink default_link_;
    std::map<Pair, SimulatedLink> links_;
    std::map<Pair, Direction> directions_;
    std::map<SiteId, Uplink> uplinks_;
    std::set<Pair> cuts_;
    std::map<SiteId, Endpoint*> endpoints_;
    std::priority_queue<std::shared_ptr<Delivery>, std::vector<std::shared_ptr<Delivery>>, Later> under_way_;
};

}  // namespace atl
