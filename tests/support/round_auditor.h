// Says whether a simulated run keeps the promises of the round protocol. Throws WorldViolation.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "rounds/coordinator_state.h"
#include "support/round_world.h"

namespace atl::testing {

// One site's work of a round.
struct Delta {
    std::uint64_t id = 0;
    SiteId site;
    Round round;
    FragmentId fragment;
    std::vector<std::uint64_t> base;  // the fragment's weights it started from
    std::vector<BlockRange> blocks;
};

struct Part {
    SiteId site;
    double weight = 0;
    std::uint64_t delta = 0;
    bool operator==(const Part&) const = default;
};

// What a packet says: one part (a contribution) or the mean of several.
struct Content {
    std::vector<Part> parts;
    std::int64_t chunk = 0;
    bool operator==(const Content&) const = default;
};

PacketDigest digest_of(const Content& content);

class RoundAuditor {
  public:
    // The coordinator stored something.
    void on_decision(const CoordinatorDecision& decision);
    void on_report(const Report& report);
    void on_delta(const Delta& delta) { deltas_[delta.id] = delta; }
    // A site applies `means` (one content per chunk) to a fragment's weights; the answer is the weights after it.
    std::vector<std::uint64_t> apply(SiteId site, const Commit& commit, const std::vector<Content>& means,
                                     const std::vector<std::uint64_t>& before);
    std::int64_t rounds() const { return std::int64_t(consumed_.size()); }
    std::int64_t later_attempts() const { return later_attempts_; }

  private:
    void on_commit(const RoundRecord& record, const Commit& commit);
    void check_ledger(const RoundRecord& record) const;

    std::map<std::pair<Round, FragmentId>, Commit> surviving_;  // committed and not truncated
    std::map<Hash128, std::map<SiteId, std::vector<BlockRange>>> taught_;  // what each commit's contributors trained on
    std::map<Round, std::map<SiteId, std::vector<BlockRange>>> consumed_;  // by surviving rounds
    std::map<Hash128, Commit> committed_;                    // ever
    std::map<Hash128, std::vector<std::uint64_t>> weights_;  // after a commit
    std::map<std::uint64_t, Delta> deltas_;
    std::map<std::uint64_t, Hash128> used_;  // Δ → the commit it is in
    std::set<std::tuple<SiteId, Incarnation, Round, FragmentId, Attempt, Hash128>> held_;
    std::int64_t later_attempts_ = 0;
};

}  // namespace atl::testing
