// An island inside one process: each member is a thread. For tests, and for islands of one rank.
//
// Sums run in the order of the Gloo ring (comm/island/ring.h), so both give the same bits.
// Errors: a member that does not come within the timeout, or whose object was destroyed, fails the call on
// all others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/island/collective.h"
#include "comm/island/point_to_point.h"

namespace atl {

// One object per member; each is to be used by one thread. `group` stands in error messages.
std::vector<std::unique_ptr<IslandCollective>> make_local_collectives(std::int32_t size, std::string group);

// One object per member. The later of the two posts of a message copies it.
std::vector<std::unique_ptr<PointToPoint>> make_local_point_to_point(std::int32_t size, std::string group);

}  // namespace atl
