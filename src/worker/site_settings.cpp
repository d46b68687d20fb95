#include "worker/site_settings.h"

#include <set>

#include "config/key_table.h"

namespace atl {

std::map<std::string, std::string> shared_settings(const RunConfig& config) {
    static const std::set<std::string_view> own_tables{"coordinator", "monitor", "timeouts", "security",
                                                       "checkpoint"};
    static const std::set<std::string> own_keys{"run.directory", "data.train", "data.validation",
                                                "model.init"};
    RunConfig copy = config;
    std::map<std::string, std::string> settings;
    for (const auto& key : run_keys()) {
        if (own_tables.contains(key.table) || own_keys.contains(key.full_name())) continue;
        settings[key.full_name()] = value_text(key.field(copy));
    }
    return settings;
}

}  // namespace atl
