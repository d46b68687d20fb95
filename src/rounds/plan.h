// The three decisions of a round: its plan, its attempts, its commit. All are made by the coordinator,
// persisted before anybody is told, and obeyed by the sites to the letter.
//
// Chunks: a fragment of n fp32 elements is cut into chunks of `chunk_elements` (the last may be shorter). In
// direct mode every member decodes every contribution; otherwise each chunk has one owner, who sums the
// contributions in SiteId order and sends the encoded mean to all members.
//
// Plain values; hashes are XXH3-128 over the little-endian fields in the order of their declaration.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rounds/types.h"

namespace atl {

struct FragmentPlan {
    FragmentId id;
    std::int64_t elements = 0;        // fp32 elements
    std::int64_t chunk_elements = 0;  // elements of every chunk but the last
    Step start_step;                  // its exchange starts when this inner step is done

    std::int64_t chunks() const { return (elements + chunk_elements - 1) / chunk_elements; }
    std::int64_t chunk_begin(std::int64_t chunk) const { return chunk * chunk_elements; }  // element index
    std::int64_t chunk_size(std::int64_t chunk) const;                                     // elements
    bool operator==(const FragmentPlan&) const = default;
};

// 256 to 512 chunks, of a power of two of elements: an exchange fills and drains its links in less than a percent of its
// time, and what each packet costs hardly counts. Of small fragments fewer than 256, of large ones more.
std::int64_t chunk_elements_for(std::int64_t fragment_elements);

// What one member does in a round.
struct SitePlan {
    SiteId site;
    Incarnation incarnation;
    bool contributes = true;  // false: a receiving member (a joiner), which trains nothing
    std::int64_t inner_steps = 0;
    double weight = 0;  // of its contribution: the number of its blocks
    std::vector<BlockRange> blocks;
    double send_bytes_per_second = 0;  // what owners' shares follow; 0: not known, or all about alike
    bool operator==(const SitePlan&) const = default;
};

// The numbers of the method, as strings and doubles that the coordinator does not interpret.
struct MethodNumbers {
    std::string method = "diloco";
    std::string codec = "int8";
    double outer_lr = 0;
    double outer_momentum = 0;
    bool nesterov = true;
    double second_decay = 0;         // of a method with a second moment
    double epsilon = 0;              // likewise
    double alpha = 0;                // share of the local weights kept when a mean is applied
    std::int64_t overlap_steps = 0;  // τ of this round: a mean is applied so many inner steps after its start
    bool operator==(const MethodNumbers&) const = default;
};

struct RoundPlan {
    std::string run_id;
    Term term;  // of the coordinator that made it
    Round round;
    Step first_step;                      // inner steps done before the round
    Hash128 state_before;                 // of the state the round begins with
    Attempt first_attempt;                // 0, or beyond the attempts of an earlier plan of the same round
    std::vector<SitePlan> sites;          // members in SiteId order
    std::vector<FragmentPlan> fragments;  // in the order of their starts; the last is applied at last_step()
    MethodNumbers numbers;
    std::vector<Step> checkpoint_steps;  // write a checkpoint when this step is done (inside the round) or,
                                         // for last_step(), when the round is applied
    bool evaluate = false;               // right after the apply
    std::optional<Step> stop_step;       // stop there: inside the round, or after the apply for last_step()
    std::string reason;

    std::int64_t inner_steps() const;  // the largest of the members
    Step last_step() const { return Step(first_step.value() + inner_steps()); }
    const SitePlan* find(SiteId site) const;  // null: not a member
    const FragmentPlan& fragment(FragmentId id) const;
    // The inner steps done when the fragment's mean is applied: exactly then, neither before nor after.
    Step apply_step(const FragmentPlan& fragment) const;
    Hash128 hash() const;
    bool operator==(const RoundPlan&) const = default;
};

struct Contributor {
    SiteId site;
    double weight = 0;
    bool operator==(const Contributor&) const = default;
};

// Chunks [first_chunk, first_chunk + chunks) are reduced by `site`.
struct OwnerShare {
    SiteId site;
    std::int64_t first_chunk = 0;
    std::int64_t chunks = 0;
    bool operator==(const OwnerShare&) const = default;
};

// One try of (round, fragment). Attempt numbers only grow within a round.
struct AttemptPlan {
    Round round;
    FragmentId fragment;
    Attempt attempt;
    Attempt resend_since;  // contributions sent under an older attempt than this are void and sent anew
    bool direct = false;   // every member decodes every contribution; no owners
    std::vector<Contributor> contributors;  // SiteId order; whose Δ is summed
    std::vector<OwnerShare> owners;         // a partition of the chunks; contributors only; empty if direct
    std::vector<SiteId> members;            // SiteId order; who must end with the mean
    std::string reason;

    bool contributes(SiteId site) const;
    bool is_member(SiteId site) const;
    SiteId owner_of(std::int64_t chunk) const;  // not in direct mode
    bool operator==(const AttemptPlan&) const = default;
};

struct Commit {
    Round round;
    FragmentId fragment;
    Attempt attempt;
    Attempt resend_since;
    bool direct = false;
    std::vector<Contributor> contributors;
    std::vector<OwnerShare> owners;
    std::vector<SiteId> members;
    Hash128 state_before;  // the hash of the state the round began with
    std::int64_t chunks = 0;
    Hash128 hash;                // h
    Step apply_step;             // inner steps done when it is applied
    Step last_step;              // inner steps done when its round is over
    std::int64_t fragments = 1;  // of its round
    MethodNumbers numbers;       // of its round, for whoever applies it without ever having seen the plan
    bool contributes(SiteId site) const;
    bool ends_round() const { return fragment.value() + 1 == fragments; }
    bool operator==(const Commit&) const = default;
};

// The attempt a commit was made of: who contributed, who owned, who keeps the packets.
AttemptPlan attempt_of(const Commit& commit);

// The hash of a state: what its round began with if nothing of it is applied yet, else h of the only commit that is, or
// XXH3-128 over the h of all that are, in fragment order.
Hash128 state_after(const Hash128& state_before, std::span<const Commit> applied);

// Splits `chunks` among the contributors in proportion to `shares` (same order; all > 0 together): contiguous,
// complete, deterministic.
std::vector<OwnerShare> share_chunks(std::int64_t chunks, const std::vector<SiteId>& sites,
                                     const std::vector<double>& shares);

// h of ROUNDS: XXH3-128 over (state before, contributors and weights, packet digests in (fragment, chunk,
// SiteId) order). In direct mode the digests are those of the contributions, else those of the means. Never
// a pass over floats.
Hash128 commit_hash(const Hash128& state_before, const AttemptPlan& attempt,
                    const std::vector<PacketDigest>& digests);

}  // namespace atl
