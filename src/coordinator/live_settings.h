// The settings that may change while a run goes on (`atoll set`). They take effect with the next round that is planned,
// on every site at once, because sites obey the plan alone.
//
// Pure functions. Errors: UserError with every problem, one line each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace atl {

std::vector<std::string> live_settings();  // "outer.inner_steps", …

struct SettingChange {
    std::string before;  // as TOML
    std::string after;
};

struct ChangedRun {
    RunConfig config;
    std::map<std::string, SettingChange> changes;  // by key; only what is different now

    std::string describe() const;  // "outer.inner_steps 50 → 64, outer.lr 0.6 → 0.8"
};

// `assignments` are "table.key=value". What sites made buffers for at their start (an outer momentum, a residual) can be
// neither begun nor ended.
ChangedRun change_settings(const RunConfig& running, const std::vector<std::string>& assignments);

}  // namespace atl
