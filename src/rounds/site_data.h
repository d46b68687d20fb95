// What SiteState is made of. Private to src/rounds: site_view.cpp reacts to the coordinator's views,
// site_exchange.cpp to packets, site_state.cpp to everything else.
#pragma once

#include <fmt/format.h>

#include "rounds/fragment_exchange.h"
#include "rounds/site_state.h"

namespace atl {

struct SiteState::Data {
    explicit Data(SiteOptions site_options) : options(std::move(site_options)) {}

    SiteId self() const { return options.self.id; }
    bool has_state() const { return phase != Phase::starting && phase != Phase::loading; }

    // site_view.cpp
    void on_view(const View& received, TimePoint now);
    void follow_view(TimePoint now);  // does what the newest view asks for and is possible now
    bool obey_end();                  // true: the run is over for this site
    void begin();                     // starting: load or fetch a state
    bool state_fits() const;
    void lose_state(const std::string& reason);
    void adopt_plan();
    void adopt_attempts();
    void adopt_attempt(const AttemptPlan& attempt, std::int64_t chunks);
    const Commit* next_commit() const;    // of the fragment whose turn it is, if it is known
    bool follow_commit(TimePoint now);    // false: there is none to apply now
    bool packets_agree(const Commit& commit, FragmentExchange& exchange, TimePoint now);
    void write_checkpoint(const std::string& reason);

    // site_exchange.cpp
    void on_packet(const site_event::PacketArrived& packet, TimePoint now);
    void on_unusable(const site_event::PacketUnusable& packet);
    void on_request(const site_event::PacketsRequested& request);
    void on_encoded(const site_event::ContributionEncoded& chunk);
    void on_reduced(const site_event::MeanReduced& mean);
    void send_own(FragmentExchange& exchange);
    void reduce_if_ready(FragmentExchange& exchange, std::int64_t chunk);
    void check_holding();
    void ask_again(TimePoint now);
    void ask_owing_peers(FragmentExchange& exchange, TimePoint now);
    void ask_for_committed(const Commit& commit, FragmentExchange& exchange, TimePoint now);
    bool owes(const FragmentExchange& exchange, SiteId peer) const;
    FragmentExchange& exchange(FragmentId fragment);
    FragmentExchange* turn();  // the exchange of the fragment whose turn it is, if anything is known of it
    FragmentExchange* exchange_of(const PacketKey& key, bool create);

    // site_state.cpp
    void on_loaded(const site_event::StateLoaded& loaded, TimePoint now);
    void on_failed(const site_event::StateFailed& failed, TimePoint now);
    void on_step(const site_event::StepDone& done, TimePoint now);
    void on_declared(const site_event::ContributionDeclared& declared);
    void on_applied(const site_event::CommitApplied& applied, TimePoint now);
    void on_checkpoint(const site_event::CheckpointWritten& written, TimePoint now);
    void on_evaluated(const site_event::Evaluated& evaluated, TimePoint now);
    void take_evaluation();
    void evaluate(const RoundPlan& done);
    void on_tick(TimePoint now);
    void end_round(TimePoint now);
    void write_planned_checkpoint();
    void drop_work(const std::string& reason);
    bool apply_is_due() const;  // the work has come to where the next fragment is applied
    Phase phase_in_round() const;
    void enter(Phase next, const std::string& reason);
    void act(SiteAction action, std::string reason) {
        decisions.push_back({std::move(action), std::move(reason)});
    }
    Report make_report();

    SiteOptions options;
    View view;
    std::vector<SiteDecision> decisions;

    Phase phase = Phase::starting;
    Round round;  // next to apply
    Step steps_done;
    Hash128 state_hash;
    std::uint64_t progress = 0;
    std::int64_t sequence = 0;
    bool leaving = false;
    bool stopped = false;

    std::optional<RoundPlan> plan;  // of `round`, once seen
    std::int64_t fragments_applied = 0;  // of `round`; the next is the one whose turn it is
    bool working = false;                // local steps or a contribution under `plan` exist
    bool loading_checkpoint = false;
    std::map<FragmentId, FragmentExchange> current;  // of `round`
    std::map<FragmentId, FragmentExchange> early;    // of the round after it
    std::map<FragmentId, FragmentExchange> kept;     // of the round before it, for those who lag

    // A peer that owes packets: since when without a sign of it, when it was last asked.
    struct Wait {
        TimePoint since;
        TimePoint asked;
        int times = 0;
    };
    std::map<FragmentId, std::map<SiteId, Wait>> waits;
    std::optional<site_action::ApplyCommit> applying;
    std::optional<std::pair<FragmentId, Attempt>> told_held;  // the coordinator knows that all of it is here
    std::optional<TimePoint> committed_asked;  // when packets of a commit were last asked for
    std::size_t committed_turn = 0;            // which member to ask next
    bool fetched_again = false;                // packets of the commit were forgotten once and fetched anew
    std::optional<TimePoint> ending_since;
    std::optional<TimePoint> retry_at;  // a fetch failed: not before
    std::optional<CheckpointRef> checkpoint_pending;
    std::optional<CheckpointRef> checkpoint_written;  // newest
    std::optional<RoundCost> last_cost;
    bool evaluating = false;               // Evaluate is ordered and not answered
    std::optional<Evaluation> evaluation;  // the newest share
    bool evaluation_taken = true;          // its total was handed to the worker
};

}  // namespace atl
