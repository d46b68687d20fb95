// How much of a fragment each owner reduces, so that the slowest uplink is done as early as it can be.
//
// With n owners and m members, an owner of the share w sends its contribution to the other owners' parts and its own
// part's mean to all others: 1 + (m − 2) w fragments. The linear program: minimise ξ so that Σw = 1, w ≥ 0 and
// (1 + (m − 2) wᵢ) / rᵢ ≤ ξ for rates r. Its closed form is ξ = max(1 / min r, (n + m − 2) / Σr) and
// wᵢ ∝ ξ rᵢ − 1. Sources: hivemind's and DeDLOC's load balancing (Diskin et al. 2021, section 3.2), which solve the program
// for n = m.
//
// Pure; the coordinator alone computes it, and attempts carry whole chunks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace atl {

// By owner; they sum to 1. Equal if a rate is 0 (not known) or there are no more than two members.
std::vector<double> owner_shares(std::span<const double> bytes_per_second, std::size_t members);

}  // namespace atl
