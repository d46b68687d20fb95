// What happens to a site (events) and what it must do about it (actions). The exchange driver and the worker
// translate between these and real bytes; every decision is made by SiteState.
//
// A packet is known by its key. Contributions are encoded once per (round, fragment): their attempt only says
// when they were sent. Means belong to exactly one attempt.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rounds/control.h"

namespace atl {

enum class Leg : std::uint8_t { contribution = 0, mean = 1 };

struct PacketKey {
    Leg leg = Leg::contribution;
    Round round;
    FragmentId fragment;
    Attempt attempt;
    SiteId origin;  // whose contribution it is, or the owner that made the mean; not always the sender
    std::int64_t chunk = 0;
    auto operator<=>(const PacketKey&) const = default;
};

namespace site_event {

struct ViewReceived {
    View view;
};
// The state of `round` is in memory: initial weights, a checkpoint's or a donor's. A checkpoint inside a round
// brings the site's local state and its steps along.
struct StateLoaded {
    Round round;
    Step step;  // inner steps done; beyond the plan's first step for a checkpoint inside a round
    Hash128 state_hash;
    std::optional<RoundPlan> plan;  // inside a round: the plan its local steps belong to
    std::int64_t fragments_applied = 0;
};
struct StateFailed {  // could not be loaded or fetched
    std::string reason;
};
struct StepDone {
    Step step;  // inner steps done since the run began
};
// Δ exists: what it is. Comes before its first chunk.
struct ContributionDeclared {
    FragmentId fragment;
    ContributionFacts facts;
};
struct ContributionEncoded {  // one chunk of the own contribution
    FragmentId fragment;
    std::int64_t chunk = 0;
    PacketDigest digest;
};
// A whole, checksummed frame of a known incarnation came in. The answer says whether to keep its bytes.
struct PacketArrived {
    PacketKey key;
    SiteId sender;
    PacketDigest digest;
    double least_norm = 0;  // contributions: of the chunk of Δ, by what its codec may have added to it
};
struct PacketUnusable {  // kept before, but its content is no good
    PacketKey key;
    ComplaintKind kind = ComplaintKind::undecodable;
};
struct MeanReduced {  // the answer to ReduceChunk
    FragmentId fragment;
    Attempt attempt;
    std::int64_t chunk = 0;
    PacketDigest digest;
};
struct PacketsRequested {  // a peer asks for packets again
    SiteId requester;
    std::vector<PacketKey> keys;
};
struct CommitApplied {
    Round round;
    FragmentId fragment;
};
// After CommitApplied, by a site that contributed.
struct RoundMeasured {
    RoundCost cost;
};
// A sign of life on the way to Evaluated.
struct WindowsEvaluated {};
// The answer to Evaluate: this site's share. No tokens: there was nothing to evaluate.
struct Evaluated {
    Evaluation share;
};
struct CheckpointWritten {
    Step step;
};
struct LeaveRequested {};
struct Tick {};

}  // namespace site_event

using SiteEvent =
    std::variant<site_event::ViewReceived, site_event::StateLoaded, site_event::StateFailed,
                 site_event::StepDone, site_event::ContributionDeclared, site_event::ContributionEncoded,
                 site_event::PacketArrived, site_event::PacketUnusable, site_event::MeanReduced,
                 site_event::PacketsRequested, site_event::CommitApplied, site_event::RoundMeasured,
                 site_event::WindowsEvaluated, site_event::Evaluated, site_event::CheckpointWritten,
                 site_event::LeaveRequested, site_event::Tick>;

namespace site_action {

struct LoadState {  // then StateLoaded
    StartFrom from;
};
struct FetchState {  // any of the donors, any round they hold; then StateLoaded
    std::vector<SiteId> donors;
};
struct StartRound {  // train; set local weights to the outer ones first if `from_outer`
    RoundPlan plan;
    bool from_outer = false;
};
struct KeepPacket {  // store the bytes that just arrived under this key
    PacketKey key;
};
// Release stored packets of (round, fragment): contributions of other sites that came under an attempt before
// `contributions_before`, and means of attempts before `means_before`.
struct DiscardPackets {
    Round round;
    FragmentId fragment;
    Attempt contributions_before;
    Attempt means_before;
};
struct SendPacket {  // stored or own; one frame to each receiver, in this order
    PacketKey key;
    std::vector<SiteId> to;
};
struct RequestPackets {  // ask `from` for these
    SiteId from;
    std::vector<PacketKey> keys;
};
// Sum the stored contributions of the chunk in this order, divide by the sum of the weights, encode; then
// MeanReduced. The bytes of the mean are then stored under (mean, round, fragment, attempt, self, chunk).
struct ReduceChunk {
    Round round;
    FragmentId fragment;
    Attempt attempt;
    std::int64_t chunk = 0;
    std::vector<Contributor> contributors;
};
// Apply the means (direct: the contributions) of the commit, outer step and residual update included; then
// CommitApplied. The fragment's local weights become the outer ones as the commit's α says. Own residuals change only
// if `contributed`; otherwise there is no own Δ.
struct ApplyCommit {
    Commit commit;
    bool contributed = false;
    Hash128 state_hash;  // of the state after it
};
// The work of the open round is void, from this fragment on; local weights go back to the outer ones.
struct DropContribution {
    Round round;
    FragmentId first;
};
struct ForgetPackets {  // release everything stored for rounds before this one, or of one fragment of those
    Round before;
    std::optional<FragmentId> fragment{};
};
struct WriteCheckpoint {  // then CheckpointWritten
    CheckpointRef checkpoint;
};
struct Evaluate {  // then Evaluated
    Round round;
    std::int64_t share = 0;  // which of `shares` parts of the held-out windows
    std::int64_t shares = 1;
};
struct TakeEvaluation {  // all sites' shares of a round that this site evaluated
    Evaluation total;
};
struct ReportNow {};  // something changed: do not wait for the next heartbeat
struct Stop {
    int exit_code = 0;
};

}  // namespace site_action

using SiteAction =
    std::variant<site_action::LoadState, site_action::FetchState, site_action::StartRound,
                 site_action::KeepPacket, site_action::DiscardPackets, site_action::SendPacket,
                 site_action::RequestPackets, site_action::ReduceChunk, site_action::ApplyCommit,
                 site_action::DropContribution, site_action::ForgetPackets, site_action::WriteCheckpoint,
                 site_action::Evaluate, site_action::TakeEvaluation, site_action::ReportNow, site_action::Stop>;

struct SiteDecision {
    SiteAction action;
    std::string reason;
};

}  // namespace atl
