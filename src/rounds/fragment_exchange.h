// What one site has and lacks of one (round, fragment): contributions, means, the hash they make. Pure bookkeeping;
// SiteState decides what to do about it.
//
// Packets may come before the plan or the attempt they belong to is known: they are kept by attempt number, and void
// ones are forgotten when an attempt is adopted.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "rounds/site_events.h"

namespace atl {

class FragmentExchange {
  public:
    explicit FragmentExchange(SiteId self) : self_(self) {}

    // Own contribution.
    void declare(const ContributionFacts& facts) { facts_ = facts; }
    void encoded(std::int64_t chunk, const PacketDigest& digest);
    void drop_own();
    const std::optional<ContributionFacts>& facts() const { return facts_; }
    bool own_complete() const;  // every chunk is encoded
    bool has_begun() const { return facts_ || !contributions_.empty() || !means_.empty(); }

    // The newest attempt, or the attempt of the commit. Void contributions of others are forgotten.
    void adopt(const AttemptPlan& attempt, std::int64_t chunks);
    const std::optional<AttemptPlan>& attempt() const { return attempt_; }

    // A packet of another site. False: not needed, its bytes can go.
    bool arrived(const PacketKey& key, const PacketDigest& digest, double least_norm);
    void reduced(std::int64_t chunk, const PacketDigest& digest);  // an own mean of the current attempt
    void forget_received();                                        // everything of others, and all means

    // Who must still get an own contribution's chunk. Each answer is given once per resend.
    std::vector<SiteId> take_receivers(std::int64_t chunk);
    std::vector<std::int64_t> encoded_chunks() const;
    // This site owns the chunk, has every contribution to it, and was not told so before in this attempt.
    bool take_reducible(std::int64_t chunk);

    bool holds_all() const { return attempt_.has_value() && remaining_ == 0; }
    Hash128 hash(const Hash128& state_before) const;  // holds_all() only
    std::vector<SiteId> missing_contributions() const;
    std::vector<SiteId> missing_means() const;
    // Of the contributors of which all is here that this site sums.
    std::vector<LeastNorm> least_norms() const;
    std::vector<PacketKey> missing_from(SiteId origin) const;
    // The key under which a stored packet can be sent to who asks for `wanted`; none: not here.
    std::optional<PacketKey> find(const PacketKey& wanted) const;

    std::set<Complaint> complaints;

  private:
    struct Arrived {
        Attempt attempt;
        PacketDigest digest;
        double least_norm = 0;
    };
    using Means = std::map<std::int64_t, PacketDigest>;

    bool valid(SiteId origin, std::int64_t chunk) const;
    bool owns(std::int64_t chunk) const;
    bool needs_contribution(std::int64_t chunk) const;
    void count_remaining();

    SiteId self_;
    std::int64_t chunks_ = 0;
    std::optional<ContributionFacts> facts_;
    std::optional<AttemptPlan> attempt_;
    std::map<SiteId, std::map<std::int64_t, Arrived>> contributions_;
    std::map<Attempt, Means> means_;
    // Before this chunk nothing that is needed of the site is missing: what is valid stays so until an attempt is adopted
    // or packets are forgotten.
    mutable std::map<SiteId, std::int64_t> first_missing_;
    mutable std::map<SiteId, double> least_norms_;  // as long as what is valid stays so
    std::map<std::int64_t, std::set<SiteId>> sent_;
    std::set<std::int64_t> reducing_;
    std::int64_t remaining_ = 0;  // packets until every mean (direct: contribution) is held
};

}  // namespace atl
