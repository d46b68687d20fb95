// A link of a given rate and delay in front of a real transport: what `atoll bench outer` sends through, so that one
// machine without privileges stands for sites far apart.
//
// One uplink per site: frames leave one after another at the rate and are handed to the transport `delay` later. The
// link is full when 50 ms of it wait for their turn, or 64 MiB are on their way, which binds without a rate; what is
// refused is announced as writable later, as a lack of credit is. TCP's own slow start,
// losses and headers are not emulated, nor is the way to the coordinator: tools/netlab does that, with privileges.
// Threads: as SiteTransport's, but send and poll from one. Errors: the transport's. Owns the transport.
#pragma once

#include <deque>
#include <memory>
#include <set>

#include "comm/site/transport.h"

namespace atl::cli {

struct LinkRate {
    double bits_per_second = 0;         // 0: as fast as the transport
    std::chrono::nanoseconds delay{0};  // one way
};

class PacedTransport final : public SiteTransport {
  public:
    PacedTransport(std::unique_ptr<SiteTransport> transport, LinkRate rate, const Clock& clock);

    void set_rate(LinkRate rate) { rate_ = rate; }  // for frames sent from now on

    SiteId self() const override { return transport_->self(); }
    Incarnation incarnation() const override { return transport_->incarnation(); }
    std::string address() const override { return transport_->address(); }
    void set_peers(const std::vector<Peer>& peers) override { transport_->set_peers(peers); }
    SendResult send(Frame frame) override;
    std::optional<TransportEvent> poll(Deadline deadline) override;
    void interrupt() override { transport_->interrupt(); }
    std::vector<PeerCounters> counters() const override { return transport_->counters(); }
    std::int64_t bytes_under_way(SiteId peer) const override;

  private:
    struct Travelling {
        Frame frame;
        TimePoint arrives{};
    };
    bool is_full(TimePoint now) const;
    void deliver(TimePoint now);
    std::optional<SiteId> writable(TimePoint now);
    TimePoint next_event(Deadline deadline) const;

    std::unique_ptr<SiteTransport> transport_;
    LinkRate rate_;
    const Clock& clock_;
    TimePoint free_{};  // the uplink, from then on
    std::deque<Travelling> travelling_;
    std::int64_t travelling_bytes_ = 0;
    std::set<SiteId> refused_;  // peers that wait for the uplink
};

}  // namespace atl::cli
