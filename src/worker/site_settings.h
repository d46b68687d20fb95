// What must be equal on all sites of a run: every setting but paths, addresses, devices and what each site watches
// for itself.
#pragma once

#include <map>
#include <string>

#include "config/run_config.h"

namespace atl {

std::map<std::string, std::string> shared_settings(const RunConfig& config);  // "train.steps" → "1000"

}  // namespace atl
