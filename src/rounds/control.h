// The two control messages. A site sends its Report at every heartbeat, change and connect; the coordinator
// answers, and announces every change, with its whole View. Both are level-triggered: any message may be
// lost, repeated or overtaken, only the newest counts.
//
// Plain values; encoding and validation are in messages.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rounds/plan.h"
#include "rounds/types.h"

namespace atl {

// A complete checkpoint a site holds.
struct CheckpointRef {
    Step step;
    Round round;  // the round that is open at that step (its plan is needed to go on)
    Hash128 state_hash;
    std::int64_t fragments_applied = 0;  // of that round
    auto operator<=>(const CheckpointRef&) const = default;
};

// What never changes while a site lives; sent until the coordinator knows it.
struct Hello {
    std::map<std::string, std::string> settings;  // the resolved configuration beyond paths and devices
    std::int64_t blocks_per_epoch = 0;
    std::vector<std::int64_t> fragment_elements;  // fp32 elements of each fragment
    std::vector<CheckpointRef> checkpoints;
    bool operator==(const Hello&) const = default;
};

// What a site declares about its Δ of one fragment, with its first chunk.
struct ContributionFacts {
    bool finite = true;
    std::vector<double> tensor_norms;  // L2, in the fragment's tensor order; empty: nothing is declared, nothing compared
    bool operator==(const ContributionFacts&) const = default;
};

enum class ComplaintKind : std::uint8_t {
    missing = 0,      // nothing came for too long, though it was due
    undecodable = 1,  // intact by checksum, yet no valid packet of its codec
    non_finite = 2,   // declared finite, decoded otherwise
};

std::string_view name(ComplaintKind kind);

struct Complaint {
    SiteId accused;
    ComplaintKind kind = ComplaintKind::missing;
    auto operator<=>(const Complaint&) const = default;
};

// What was decoded of a site's Δ proves that it is at least so large.
struct LeastNorm {
    SiteId site;
    double norm = 0;  // L2
    bool operator==(const LeastNorm&) const = default;
};

// Where a site is with one fragment of the open round.
struct FragmentReport {
    FragmentId fragment;
    Attempt attempt;
    std::optional<ContributionFacts> contribution;  // present once declared
    std::vector<SiteId> missing_contributions;      // of the attempt; SiteId order
    std::vector<SiteId> missing_means;              // owners whose means are missing
    std::vector<Complaint> complaints;
    std::vector<LeastNorm> least_norms;  // of contributions of others, once all is here that this site sums
    std::optional<Hash128> held;  // h, once every mean is held
    bool operator==(const FragmentReport&) const = default;
};

// Bytes that one round moved between a site and a peer. Payload: packets; wire: frames, as the transport counts them.
struct PeerTraffic {
    SiteId peer;
    std::int64_t payload_bytes_sent = 0;
    std::int64_t payload_bytes_received = 0;
    std::int64_t wire_bytes_sent = 0;
    std::int64_t wire_bytes_received = 0;
    double round_trip_seconds = 0;  // 0: not known
    bool operator==(const PeerTraffic&) const = default;
};

// What a round has cost a site that contributed to it, by its own clock.
struct RoundCost {
    Round round;
    std::int64_t inner_steps = 0;
    double step_seconds = 0;          // inside inner steps, all together
    double round_seconds = 0;         // from the order to train until the mean was applied
    double exchange_seconds = 0;      // from the own contribution to the commit's arrival
    std::int64_t raw_bytes_sent = 0;  // what the payload is in fp32
    std::vector<PeerTraffic> peers;

    double stall_seconds() const { return round_seconds - step_seconds; }
    double compute_utilization() const { return round_seconds > 0 ? step_seconds / round_seconds : 0; }
    std::int64_t payload_bytes_sent() const;
    std::int64_t payload_bytes_received() const;
    bool operator==(const RoundCost&) const = default;
};

// Held-out loss of the state after a round: one site's share of the windows, or all shares that came. The members of
// the round's plan share the windows in SiteId order; what a lost site would have evaluated is left out.
struct Evaluation {
    Round round;
    double loss_sum = 0;      // nats
    std::int64_t tokens = 0;  // that have a loss
    bool operator==(const Evaluation&) const = default;
};

// All packets that make its mean are here: others can have them.
struct KeptFragment {
    Round round;
    FragmentId fragment;
    bool operator==(const KeptFragment&) const = default;
};

struct Report {
    std::string run_id;
    SiteInfo site;
    Term term;                  // newest seen
    std::int64_t version = 0;   // newest view of that term seen
    std::int64_t sequence = 0;  // grows with every report of an incarnation: older ones are ignored
    Phase phase = Phase::starting;
    Round round;                         // the next round to apply; meaningless while starting
    Step steps_done;                     // inner steps
    std::int64_t fragments_applied = 0;  // of that round
    Hash128 state_hash;          // of the committed state it holds; meaningless while starting or loading
    std::uint64_t progress = 0;  // grows whenever anything moved: a step, a packet, a piece of state
    bool leaving = false;        // wants to leave at the next quiescent point
    double send_bytes_per_second = 0;  // to all peers together while its link was full; 0: not measured
    std::vector<FragmentReport> fragments;
    std::vector<KeptFragment> kept;        // of this round and the one before
    std::optional<RoundCost> last_cost;    // of the newest round it contributed to and applied
    std::optional<Evaluation> evaluation;  // of the newest round that it evaluated, its share
    std::optional<Hello> hello;
    bool operator==(const Report&) const = default;

    bool has_state() const { return phase != Phase::starting && phase != Phase::loading; }
};

// Where sites without state begin.
struct StartFrom {
    enum class Kind : std::uint8_t { initial = 0, checkpoint = 1 };
    Kind kind = Kind::initial;
    Step step;
    Round round;
    Hash128 state_hash;                  // checkpoint only
    std::int64_t fragments_applied = 0;  // of that round; checkpoint only
    std::string reason;
    bool operator==(const StartFrom&) const = default;
};

// The run is over for everybody.
struct Ending {
    int exit_code = 0;
    bool checkpoint = false;  // write one first
    std::string reason;
    bool operator==(const Ending&) const = default;
};

struct SiteView {
    SiteInfo info;
    Standing standing = Standing::joining;
    Phase phase = Phase::starting;
    Round round;                         // the next round it will apply
    std::int64_t fragments_started = 0;  // of that round: its contribution is declared
    bool blocked = false;  // it misses contributions to the last of them, so its own means can't be due
    std::string reason;    // of the standing
    bool operator==(const SiteView&) const = default;
};

struct View {
    std::string run_id;
    Term term;
    std::int64_t version = 0;              // grows with every change within a term
    std::vector<SiteView> sites;           // SiteId order; every site ever seen
    Round round;                           // open, or the next one
    std::optional<Hash128> state_before;   // of the state it begins with; unknown before the first plan
    std::optional<StartFrom> start;        // until the round it leads to is committed
    std::optional<RoundPlan> plan;         // the open round
    std::vector<AttemptPlan> attempts;     // the newest of each fragment of the open round
    std::vector<Commit> open_commits;      // of the open round, in fragment order
    std::vector<Commit> commits;           // of the last committed round, in fragment order
    std::optional<Evaluation> evaluation;  // of the newest round whose shares are all there, in sum
    std::optional<Ending> ending;
    // For its receiver alone:
    bool hello_known = false;
    std::string refusal;  // not empty: go away, this is why
    bool operator==(const View&) const = default;

    const SiteView* find(SiteId site) const;
    // Another process is in the run under this one's name. It has the name until it is gone.
    bool name_is_taken(const SiteInfo& own) const;
    std::string called(SiteId site) const;  // its name, or its number while it has never been seen
    const AttemptPlan* attempt(FragmentId fragment) const;
    const std::vector<Commit>& commits_of(Round round) const;  // as far as the view has them
};

}  // namespace atl
