// Which data blocks are trained on by whom: every block of every epoch once, in order, whatever happens.
//
// Blocks are leased to the sites of a round plan in SiteId order. When the round commits, the leases of its
// contributors are consumed; all others go back to the front and are leased first in the next round.
//
// A value: copy it, compare it, store its fields. Deterministic. Cost: O(ranges).
#pragma once

#include <map>
#include <vector>

#include "rounds/types.h"

namespace atl {

struct Ledger {
    std::int64_t blocks_per_epoch = 0;  // > 0
    std::int64_t next_epoch = 0;        // first block never leased
    std::int64_t next_block = 0;
    std::vector<BlockRange> returned;                  // sorted, not overlapping; leased before next_block
    std::map<SiteId, std::vector<BlockRange>> leases;  // of the open round

    // Takes `count` blocks for a site without a lease.
    std::vector<BlockRange> lease(SiteId site, std::int64_t count);
    // A site's lease goes back to the front. Nothing happens if it has none.
    void give_back(SiteId site);
    // The round committed: leases of contributors are consumed, the others go back.
    void settle(const std::vector<SiteId>& contributors);

    bool operator==(const Ledger&) const = default;
};

}  // namespace atl
