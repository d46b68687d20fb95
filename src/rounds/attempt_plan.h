// How an attempt is laid out: direct or with owners, and which owner reduces which chunks.
//
// Pure.
#pragma once

#include "rounds/plan.h"

namespace atl {

// The first attempt under a plan; packets of an earlier plan of the same round are void. `gather`: direct whatever
// the number of members.
AttemptPlan first_attempt(const RoundPlan& plan, const FragmentPlan& fragment, bool gather);

// The attempt after `last` under the same plan, with these contributors and members. `resend`: all contributions are sent
// anew.
AttemptPlan next_attempt(const AttemptPlan& last, const RoundPlan& plan,
                         const std::vector<Contributor>& contributors, const std::vector<SiteId>& members,
                         bool resend, std::string reason);

}  // namespace atl
