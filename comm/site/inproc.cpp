#include "comm/site/inproc.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "comm/site/endpoint.h"
#include "core/check.h"

namespace atl {

// Carries frames between endpoints. One thread at a time delivers; others leave their work in its queue, so
// the frames of one sender stay in order and nothing recurses.
class InprocNetwork::Hub {
  public:
    void add(SiteId site, std::shared_ptr<Endpoint> endpoint) {
        const std::scoped_lock lock(mutex_);
        ATOLL_CHECK(endpoints_.emplace(site, std::move(endpoint)).second, "site {} is here already", site);
    }

    void remove(SiteId site) {
        std::vector<std::shared_ptr<Endpoint>> others;
        {
            const std::scoped_lock lock(mutex_);
            endpoints_.erase(site);
            for (const auto& [other, endpoint] : endpoints_) others.push_back(endpoint);
        }
        for (const auto& endpoint : others) endpoint->disconnected(site, "the peer is gone");
    }

    void set_cut(SiteId one, SiteId other, bool is_cut) {
        std::shared_ptr<Endpoint> first;
        std::shared_ptr<Endpoint> second;
        {
            const std::scoped_lock lock(mutex_);
            if (is_cut) {
                cuts_.insert(std::minmax(one, other));
            } else {
                cuts_.erase(std::minmax(one, other));
            }
            first = find(one);
            second = find(other);
        }
        if (!is_cut) return;
        if (first) first->disconnected(other, "the link is cut");
        if (second) second->disconnected(one, "the link is cut");
    }

    void pump(SiteId site) {
        std::unique_lock lock(mutex_);
        ready_.push_back(site);
        if (is_pumping_) return;
        is_pumping_ = true;
        while (!ready_.empty()) {
            const SiteId from = ready_.front();
            ready_.pop_front();
            const auto endpoint = find(from);
            if (!endpoint) continue;
            for (OutgoingFrame& frame : endpoint->drain_outbox()) {
                const auto target = cuts_.contains(std::minmax(from, frame.to)) ? nullptr : find(frame.to);
                if (!target) continue;
                lock.unlock();
                target->receive(from, frame.head, std::move(frame.body));
                lock.lock();
            }
        }
        is_pumping_ = false;
    }

  private:
    std::shared_ptr<Endpoint> find(SiteId site) const {
        const auto found = endpoints_.find(site);
        return found == endpoints_.end() ? nullptr : found->second;
    }

    std::mutex mutex_;
    std::map<SiteId, std::shared_ptr<Endpoint>> endpoints_;  // shared: a delivery may outlast a removal
    std::set<std::pair<SiteId, SiteId>> cuts_;
    std::deque<SiteId> ready_;
    bool is_pumping_ = false;
};

class InprocNetwork::Transport final : public SiteTransport {
  public:
    Transport(std::shared_ptr<Hub> hub, TransportOptions options) : hub_(std::move(hub)) {
        const SiteId self = options.self;
        endpoint_ =
            std::make_shared<Endpoint>(std::move(options), [hub = hub_.get(), self] { hub->pump(self); });
        hub_->add(self, endpoint_);
    }
    ~Transport() override { hub_->remove(self()); }

    SiteId self() const override { return endpoint_->options().self; }
    Incarnation incarnation() const override { return endpoint_->options().incarnation; }
    std::string address() const override { return fmt::format("inproc:{}", self()); }
    void set_peers(const std::vector<Peer>& peers) override {
        endpoint_->set_peers(peers);
        endpoint_->tick(clock_.now());
    }
    SendResult send(Frame frame) override { return endpoint_->send(std::move(frame)); }
    std::optional<TransportEvent> poll(Deadline deadline) override {
        while (true) {
            if (auto event = endpoint_->take()) return event;
            const TimePoint now = clock_.now();
            const TimePoint next = endpoint_->tick(now);
            if (now >= deadline) return endpoint_->take();
            if (endpoint_->wait(std::min(next, deadline))) return endpoint_->take();
        }
    }
    void interrupt() override { endpoint_->interrupt(); }
    std::vector<PeerCounters> counters() const override { return endpoint_->counters(); }
    std::int64_t bytes_under_way(SiteId) const override { return 0; }

  private:
    SystemClock clock_;
    std::shared_ptr<Hub> hub_;  // shared by all transports of the network
    std::shared_ptr<Endpoint> endpoint_;
};

InprocNetwork::InprocNetwork() : hub_(std::make_shared<Hub>()) {}
InprocNetwork::~InprocNetwork() = default;

std::unique_ptr<SiteTransport> InprocNetwork::join(TransportOptions options) {
    return std::make_unique<Transport>(hub_, std::move(options));
}
void InprocNetwork::cut(SiteId one, SiteId other) {
    hub_->set_cut(one, other, true);
}
void InprocNetwork::heal(SiteId one, SiteId other) {
    hub_->set_cut(one, other, false);
}

}  // namespace atl
