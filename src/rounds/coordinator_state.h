// The coordinator's half of the round protocol as a pure state machine: membership, plans, attempts, commits,
// resume. An event and the time go in; what to store and why comes out. It touches no socket, file or clock.
//
// Use: construct from what was stored, handle Started, then every event. After each call store all decisions in one
// transaction, and only then send view_for() to the sites: at once if version() grew, and as the answer to every
// report. README.md has the diagram.
//
// Copyable. Not thread-safe. Throws CheckError only; reports must be validated before (messages.h).
// Cost: O(sites² + plan) per event.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "rounds/control.h"
#include "rounds/ledger.h"

namespace atl {

struct CoordinatorTimeouts {
    Milliseconds disconnect{200};        // a broken connection may come back this long
    Milliseconds progress{30'000};       // no report, or work without progress: silent
    Milliseconds reconnect{5'000};       // after a start of the coordinator nobody is declared lost this long
    Milliseconds quorum{60'000};         // too few sites for this long: the run ends
    Milliseconds join{60'000};           // the first plan waits this long for all sites of the configuration
    Milliseconds complaint_window{250};  // "A misses B" is judged this long after the first of its kind
};

// What the coming rounds are made of; may change between rounds.
struct RunNumbers {
    MethodNumbers method;
    std::int64_t inner_steps = 50;       // H
    bool automatic_inner_steps = false;  // H follows what rounds cost; a restart goes on with the last plan's
    std::int64_t warmup_rounds = 0;      // warmup.h
    bool a_round_late = false;  // the method's exchange is beside the whole round after the one it is of
    std::map<SiteId, std::int64_t>
        site_inner_steps;          // H of sites that do fewer; longer and shorter rounds in proportion
    std::int64_t total_steps = 0;  // inner steps of the run
    std::int64_t checkpoint_interval = 0;  // inner steps; 0: only at the end
    std::int64_t evaluate_interval = 0;    // rounds; 0: only at the end
    std::optional<std::int64_t> chunk_elements;  // none: by the fragments' sizes
    bool gather = false;        // sparse codec: direct whatever the number of sites
    bool equal_shares = false;  // of owners, whatever their links
    std::optional<Step> stop_at;
};

struct CoordinatorOptions {
    std::string run_id;
    std::vector<std::string> site_names;          // by SiteId
    std::map<std::string, std::string> settings;  // what every site's configuration must equal
    std::int64_t min_sites = 1;
    double norm_factor = 5;  // a contribution this many times the median is excluded
    RunNumbers numbers;
    CoordinatorTimeouts timeouts;
};

// One round as stored. `ledger` includes the leases of the plan.
struct RoundRecord {
    RoundPlan plan;
    Ledger ledger;
    std::vector<AttemptPlan> attempts;  // the newest of each fragment
    std::vector<FragmentId> resent;     // fragments whose packets were all sent again after unequal hashes
    std::vector<Commit> commits;
    bool committed() const { return commits.size() == plan.fragments.size(); }
    bool operator==(const RoundRecord&) const = default;
};

// The newest rounds' costs of each site, oldest first.
using RoundCosts = std::map<SiteId, std::deque<RoundCost>>;
inline constexpr std::size_t kCostsKept = 16;  // per site

// All that outlives the coordinator's process.
struct CoordinatorRecord {
    Term term;
    std::map<Round, RoundRecord> rounds;  // only the newest may be uncommitted
    // What was changed while the run went on: "table.key" → value. The coordinator's numbers already have it.
    std::map<std::string, std::string> changes;
    RoundCosts costs;
    bool operator==(const CoordinatorRecord&) const = default;
};

namespace coordinator_event {
struct Started {};
struct ReportReceived {
    Report report;
};
struct Disconnected {
    SiteId site;
    Incarnation incarnation;
};
struct NumbersChanged {  // from the next round that is planned
    RunNumbers numbers;
    std::map<std::string, std::string>
        changes;  // of settings, to be remembered; none: a decision of the moment
    std::string reason;
};
struct StopRequested {
    std::string reason;
};
struct Tick {};
}  // namespace coordinator_event

using CoordinatorEvent = std::variant<coordinator_event::Started, coordinator_event::ReportReceived,
                                      coordinator_event::Disconnected, coordinator_event::NumbersChanged,
                                      coordinator_event::StopRequested, coordinator_event::Tick>;

namespace coordinator_action {
struct StoreTerm {
    Term term;
};
struct StoreRound {  // insert or replace
    RoundRecord record;
};
struct TruncateRounds {  // forget every round after this one
    Round last;
};
struct StoreChanges {  // all there are
    std::map<std::string, std::string> changes;
};
struct StoreCost {  // and forget those that are no longer kept
    SiteId site;
    RoundCost cost;
};
struct Note {};  // nothing to store; the reason is for the log
}  // namespace coordinator_action

using CoordinatorAction = std::variant<coordinator_action::StoreTerm, coordinator_action::StoreRound,
                                       coordinator_action::TruncateRounds, coordinator_action::StoreChanges,
                                       coordinator_action::StoreCost, coordinator_action::Note>;

struct CoordinatorDecision {
    CoordinatorAction action;
    std::string reason;  // empty: not worth telling
};

class CoordinatorState {
  public:
    CoordinatorState(CoordinatorOptions options, CoordinatorRecord stored);
    CoordinatorState(const CoordinatorState& other);
    CoordinatorState& operator=(const CoordinatorState& other);
    CoordinatorState(CoordinatorState&&) noexcept;
    CoordinatorState& operator=(CoordinatorState&&) noexcept;
    ~CoordinatorState();

    std::vector<CoordinatorDecision> handle(const CoordinatorEvent& event, TimePoint now);

    const View& view() const;  // without what is for one receiver alone
    View view_for(const SiteInfo& receiver, const std::string& run_id) const;
    std::int64_t version() const { return view().version; }
    const CoordinatorRecord& record() const;
    const RunNumbers& numbers() const;  // of the coming rounds
    bool done() const;  // the run has ended and every site has gone: exit with view().ending->exit_code
    // Some site has work left, a last evaluation or checkpoint, and has got on with it within timeouts.progress.
    bool anyone_works(TimePoint now) const;

  private:
    class Data;
    std::unique_ptr<Data> data_;
};

}  // namespace atl
