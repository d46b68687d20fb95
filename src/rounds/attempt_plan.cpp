#include "rounds/attempt_plan.h"

#include "rounds/owner_shares.h"

namespace atl {
namespace {

// Two sites exchange directly: each decodes the other's contribution, which saves the second leg. From three on,
// owners do: each site then sends and receives about two fragments whatever the number of sites.
constexpr std::size_t kDirectMembers = 2;

void lay_out(AttemptPlan& attempt, const RoundPlan& plan, bool direct) {
    attempt.direct = direct;
    if (direct) return;
    std::vector<SiteId> sites;
    std::vector<double> rates;
    for (const Contributor& contributor : attempt.contributors) {
        const SitePlan* site = plan.find(contributor.site);
        sites.push_back(contributor.site);
        rates.push_back(site == nullptr ? 0 : site->send_bytes_per_second);
    }
    attempt.owners = share_chunks(plan.fragment(attempt.fragment).chunks(), sites,
                                  owner_shares(rates, attempt.members.size()));
}

}  // namespace

AttemptPlan first_attempt(const RoundPlan& plan, const FragmentPlan& fragment, bool gather) {
    AttemptPlan first;
    first.round = plan.round;
    first.fragment = fragment.id;
    first.attempt = plan.first_attempt;
    first.resend_since = plan.first_attempt;
    for (const SitePlan& site : plan.sites) {
        first.members.push_back(site.site);
        if (site.contributes) first.contributors.push_back({site.site, site.weight});
    }
    first.reason = plan.reason;
    lay_out(first, plan, gather || first.members.size() <= kDirectMembers);
    return first;
}

AttemptPlan next_attempt(const AttemptPlan& last, const RoundPlan& plan,
                         const std::vector<Contributor>& contributors, const std::vector<SiteId>& members,
                         bool resend, std::string reason) {
    AttemptPlan next;
    next.round = last.round;
    next.fragment = last.fragment;
    next.attempt = last.attempt.next();
    next.resend_since = resend ? next.attempt : last.resend_since;
    next.contributors = contributors;
    next.members = members;
    next.reason = std::move(reason);
    lay_out(next, plan, last.direct || members.size() <= kDirectMembers);
    return next;
}

}  // namespace atl
