// What CoordinatorState is made of. Private to src/rounds: its four steps are in coordinator_start.cpp (where sites
// without state begin), coordinator_plan.cpp (round plans), coordinator_attempt.cpp (attempts and commits) and
// coordinator_state.cpp (events and the view).
#pragma once

#include <deque>

#include "rounds/commit_rule.h"
#include "rounds/complaints.h"
#include "rounds/coordinator_state.h"
#include "rounds/membership.h"
#include "rounds/site_names.h"

namespace atl {

class CoordinatorState::Data {
  public:
    Data(CoordinatorOptions run_options, CoordinatorRecord stored);

    // A member that the open round no longer waits for.
    struct Removal {
        std::int64_t version = 0;  // of the first view that shows it
        std::string reason;
    };

    // Contributors whose Δ can't be in the mean, and why.
    struct Exclusions {
        std::map<SiteId, std::string> sites;
        bool by_content = false;  // at least one of them for what its Δ contains
    };

    // Events.
    void start(TimePoint now);
    void advance(TimePoint now);
    void take_cost(const Report& report);
    std::optional<Evaluation> evaluated(TimePoint now) const;
    void change_numbers(const coordinator_event::NumbersChanged& change);

    // The open or next round, and the hash of the state it begins with.
    RoundRecord* open_record();
    const RoundRecord* open_record() const;
    Round next_round() const;
    std::optional<Hash128> base_hash() const;
    std::optional<Hash128> base_hash(Round round) const;  // nothing is known about that round: none
    // Of the state with so many of the round's fragments applied; none: there is no such state.
    std::optional<Hash128> state_hash(Round round, std::int64_t fragments_applied) const;
    const RoundRecord* last_committed() const;

    // coordinator_start.cpp
    void advance_start(TimePoint now);
    void choose_start_point(TimePoint now);
    bool has_base_state(const KnownSite& site) const;  // holds what the next round begins with, or will
    // Does anybody who is there still hold the packets of the round's commits from this one on?
    bool packets_are_kept(const RoundRecord& round, std::int64_t from) const;
    bool is_cut_off_from_state(const KnownSite& site) const;
    bool anybody_has_state() const;
    bool anybody_suspect() const;
    bool start_complete(TimePoint now) const;  // all who could begin have, or their time is up

    // coordinator_plan.cpp
    void advance_plan(TimePoint now);
    bool nothing_left_to_do();  // ends the run
    std::vector<SiteId> able_contributors() const;
    void wait_for_quorum(std::size_t able, TimePoint now);
    void make_plan(const std::vector<SiteId>& contributors);
    Ledger ledger_before_plan(const std::vector<SiteId>& contributors) const;
    std::vector<FragmentPlan> fragment_layouts() const;
    void plan_steps(RoundPlan& plan, std::int64_t& inner_steps) const;
    std::int64_t site_steps(SiteId site, std::int64_t inner_steps) const;
    void plan_fragments(RoundPlan& plan) const;
    void set_flags(RoundPlan& plan) const;
    void plan_send_rates(RoundPlan& plan) const;

    // coordinator_attempt.cpp
    void advance_attempts(TimePoint now);
    bool advance_fragment(RoundRecord& round, AttemptPlan& attempt, TimePoint now);  // false: nothing changed
    bool everybody_stopped(const RoundPlan& plan) const;
    bool broken(const RoundRecord& round) const;  // can't be committed by those who are left
    Exclusions judge_contributions(const RoundRecord& round, const AttemptPlan& attempt) const;
    void exclude_liars(const AttemptPlan& attempt, Exclusions& out) const;
    void exclude_implausible(const AttemptPlan& attempt, Exclusions& out) const;
    std::vector<Contributor> usable_contributors(const AttemptPlan& attempt) const;
    bool enough(std::size_t contributors) const;
    void cut_off_sites(const RoundRecord& round, const AttemptPlan& attempt, TimePoint now);
    bool replace_attempt(RoundRecord& round, AttemptPlan& attempt);
    void settle_disagreement(RoundRecord& round, AttemptPlan& attempt, const CommitVerdict& verdict);
    void commit(RoundRecord& round, const AttemptPlan& attempt, const Hash128& hash);
    void finish_round(const RoundRecord& round);
    std::vector<SiteId> waiting_members(const std::vector<SiteId>& members) const;  // not removed
    const FragmentReport* fragment_report(SiteId site, const AttemptPlan& attempt) const;

    std::string called(SiteId site) const { return site_name(options.site_names, site); }
    void remove(SiteId site, const std::string& reason);  // from the open round
    void end(int exit_code, bool checkpoint, std::string reason);
    void decide(CoordinatorAction action, std::string reason);
    void refresh_view(TimePoint now);

    CoordinatorOptions options;
    CoordinatorRecord record;
    Membership membership;
    View view;
    std::vector<CoordinatorDecision> decisions;

    std::map<SiteId, Removal> removed;
    std::map<FragmentId, Exclusions> excluded;                            // judged anew with every report
    bool replan_due = false;                                              // a resume reopened the round
    std::map<FragmentId, std::map<ComplaintEdge, TimePoint>> complaints;  // since when
    std::map<FragmentId, std::deque<double>> norm_history;
    TimePoint grace_until;
    std::optional<TimePoint> start_deadline;  // for all sites to come, then for all to load
    std::optional<TimePoint> quorum_deadline;
    std::optional<StartFrom> start_from;
    std::optional<Ending> ending;
    std::optional<std::string> stop_reason;
    std::string change_reason;  // of numbers that no plan has had yet
};

}  // namespace atl
