// Where sites without state begin: the newest checkpoint that all of them hold, else the newest that any holds
// (the others then fetch the state from a site that loaded it), else the initial weights.
//
// Pure.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "rounds/control.h"

namespace atl {

// `offers`: the complete checkpoints of each returning site. `usable` says whether the coordinator has a record of
// the checkpoint's round that begins with the same state.
StartFrom choose_start(const std::map<SiteId, std::vector<CheckpointRef>>& offers,
                       const std::function<bool(const CheckpointRef&)>& usable);

}  // namespace atl
