// The site's half of the round protocol as a pure state machine: an event and the time go in, actions with
// their reasons come out. It touches no bytes, no sockets, no clock.
//
// Use: feed every event of site_events.h; execute the decisions in order; send report() to the coordinator at
// every heartbeat and whenever ReportNow is among the decisions. README.md has the diagram.
//
// Copyable. Not thread-safe: one driver thread. Throws CheckError only (an event that can't occur).
// Cost: O(chunks) memory per fragment, O(1) per packet event, O(chunks · members) when an attempt changes.
#pragma once

#include <memory>
#include <vector>

#include "core/clock.h"
#include "rounds/site_events.h"

namespace atl {

struct SiteOptions {
    std::string run_id;
    SiteInfo self;
    Hello hello;
    Milliseconds resend{500};       // nothing new from a peer that owes packets: ask it again
    Milliseconds progress{30'000};  // still nothing: complain to the coordinator
};

class SiteState {
  public:
    explicit SiteState(SiteOptions options);
    SiteState(const SiteState& other);
    SiteState& operator=(const SiteState& other);
    SiteState(SiteState&&) noexcept;
    SiteState& operator=(SiteState&&) noexcept;
    ~SiteState();

    std::vector<SiteDecision> handle(const SiteEvent& event, TimePoint now);

    // What the coordinator should know now. Each call has a new sequence number.
    Report report();
    Phase phase() const;
    Round round() const;       // the next round to apply
    std::int64_t fragments_applied() const;  // of it
    const View& view() const;  // the newest

  private:
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace atl
