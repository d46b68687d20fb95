// Is a contribution's size plausible? Its declared L2 norm is compared with the median of the attempt's
// contributions, or, with fewer than three of them, with this run's recent rounds. Only too large is suspect: a
// small Δ does no harm, and slow sites make small ones.
//
// Pure. Every entry point is deterministic in its arguments.
#pragma once

#include <string>
#include <vector>

#include "rounds/control.h"

namespace atl {

inline constexpr std::size_t kNormHistory = 16;       // norms of committed contributions that are kept
inline constexpr std::size_t kNormHistoryNeeded = 6;  // fewer: no judgement from history
inline constexpr double kHistoryFactor = 2;           // history is staler than peers: allow this much more

struct DeclaredNorm {
    SiteId site;
    double norm = 0;
};

struct NormSuspect {
    SiteId site;
    std::string reason;
};

// L2 norm of the whole Δ from its tensors' norms.
double total_norm(const ContributionFacts& facts);

// Contributions larger than `factor` medians (history: kHistoryFactor times that), in SiteId order.
std::vector<NormSuspect> implausible_norms(const std::vector<DeclaredNorm>& norms,
                                           const std::vector<double>& history, double factor);

}  // namespace atl
