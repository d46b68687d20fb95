#include "rounds/commit_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "rounds/site_names.h"

namespace atl {

CommitVerdict judge_commit(const std::vector<HeldHash>& held, const std::vector<std::string>& site_names) {
    CommitVerdict verdict;
    std::map<Hash128, std::vector<SiteId>> groups;
    std::vector<SiteId> awaited;
    for (const HeldHash& member : held) {
        if (member.hash) {
            groups[*member.hash].push_back(member.site);
        } else {
            awaited.push_back(member.site);
        }
    }
    if (held.empty() || !awaited.empty()) {
        verdict.reason = held.empty() ? std::string("no member is left")
                                      : fmt::format("waiting for site {}", site_list(site_names, awaited));
        return verdict;
    }
    std::vector<std::string> sides;
    for (const auto& [hash, sites] : groups) {
        sides.push_back(fmt::format("site {} holds {}", site_list(site_names, sites), hash.hex()));
        if (2 * sites.size() > held.size()) {
            verdict.majority = true;
            verdict.hash = hash;
        }
    }
    verdict.reason = fmt::format("{}", fmt::join(sides, "; "));
    verdict.kind = groups.size() == 1 ? CommitVerdict::Kind::commit : CommitVerdict::Kind::disagree;
    if (verdict.kind == CommitVerdict::Kind::commit || !verdict.majority) return verdict;
    for (const HeldHash& member : held) {
        if (*member.hash != verdict.hash) verdict.minority.push_back(member.site);
    }
    return verdict;
}

}  // namespace atl
