// Who is to go when sites miss each other's packets. "A misses B" is an edge; either end may be at fault, so the
// smallest set of sites that covers every edge is removed: a site cut off from all others goes alone.
//
// Pure. Exact up to 16 accused or accusing sites, above that greedy by number of edges.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "rounds/types.h"

namespace atl {

using ComplaintEdge = std::pair<SiteId, SiteId>;  // (accuser, accused)

// The smallest covering set, in SiteId order; ties: fewer tokens in all, then higher SiteIds. `tokens` weighs each
// site (absent: 0).
std::vector<SiteId> smallest_covering_set(const std::vector<ComplaintEdge>& edges,
                                          const std::map<SiteId, double>& tokens);

}  // namespace atl
