// What a run's configuration says about its rounds. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "rounds/coordinator_state.h"

namespace atl {

// What must be the same at every site: each key of the configuration but paths, addresses, devices, timeouts and what
// concerns one machine alone. A site whose settings differ is refused.
std::map<std::string, std::string> shared_settings(const RunConfig& config);

// What the coming rounds are made of, without what only a start of the coordinator knows (`stop_at`, the size of chunks).
RunNumbers run_numbers(const RunConfig& config);

// `stop_at`: the run stops, checkpointed, when this inner step is done.
CoordinatorOptions coordinator_options(const RunConfig& config, std::optional<Step> stop_at);

}  // namespace atl
