// When is an attempt committed? When every member that is still there has reported the same hash.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rounds/plan.h"

namespace atl {

struct HeldHash {
    SiteId site;
    std::optional<Hash128> hash;  // none: it does not hold every mean yet
};

struct CommitVerdict {
    enum class Kind {
        wait,      // somebody has not reported
        commit,    // all agree on `hash`
        disagree,  // all have reported, not the same
    };
    Kind kind = Kind::wait;
    Hash128 hash;                  // commit, or disagree with a majority: the hash to go with
    bool majority = false;         // disagree: more than half agree on `hash`
    std::vector<SiteId> minority;  // disagree with a majority: those who hold something else
    std::string reason;            // names who is awaited, or who holds which hash
};

// `held` lists the members that are not lost; `site_names`, by SiteId, is for the reason.
CommitVerdict judge_commit(const std::vector<HeldHash>& held, const std::vector<std::string>& site_names);

}  // namespace atl
