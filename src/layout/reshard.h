// Reshard plan: who sends which box piece of which tensor to whom, so that a state in one layout comes to be in
// another one. Pure data; carrying it out is somebody else's.
//
// Every element of every box of the new layout arrives exactly once. A rank that holds an element keeps its own
// copy; otherwise it comes from the holder that has sent the fewest elements so far (the lowest rank among
// equals), so the plan is the same wherever it is computed.
// Errors: an element that no rank holds in the old layout fails a check that names tensor and box.
#pragma once

#include <string>
#include <vector>

#include "layout/layout.h"

namespace atl {

struct Transfer {
    std::string tensor;
    Box box;
    Rank from;
    Rank to;  // from == to: a copy on one rank
    bool operator==(const Transfer&) const = default;
};

// Ordered by tensor, then receiving rank, then box.
std::vector<Transfer> plan_reshard(const Layout& from, const Layout& to);

}  // namespace atl
