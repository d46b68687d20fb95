#include "coordinator/live_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "config/key_table.h"
#include "config/load_config.h"
#include "config/wire_codec.h"
#include "core/error.h"

namespace atl {
namespace {

constexpr std::array<std::string_view, 8> kLive{
    "outer.inner_steps", "outer.lr",       "outer.momentum",      "outer.nesterov",
    "outer.alpha",       "exchange.codec", "checkpoint.interval", "monitor.eval_interval"};

// The key of an assignment under its own name.
std::string key_of(const std::string& assignment) {
    std::string key = assignment.substr(0, assignment.find('='));
    for (const KeyAlias& alias : key_aliases())
        if (alias.old_name == key) key = alias.name;
    return key;
}

template <class Owner>
bool has_key(std::span<const Key<Owner>> keys, const std::string& name) {
    return std::ranges::any_of(keys, [&](const Key<Owner>& key) { return key.full_name() == name; });
}

// A key that exists but is read only when a run starts. Keys that don't exist are the config's to complain of.
bool is_fixed(const std::string& key) {
    if (std::ranges::find(kLive, key) != kLive.end()) return false;
    return key.starts_with("site.") || has_key(run_keys(), key) || has_key(island_keys(), key);
}

void check_buffers(const RunConfig& running, const RunConfig& changed, std::vector<std::string>& problems) {
    if ((running.outer.momentum == 0) != (changed.outer.momentum == 0)) {
        problems.push_back(
            fmt::format("set: outer.momentum = {}: must stay {} while the run goes on: sites keep a momentum "
                        "from the start or never",
                        changed.outer.momentum, running.outer.momentum == 0 ? "0" : "above 0"));
    }
    if (running.exchange.codec == changed.exchange.codec) return;
    for (const ExchangeConfig* exchange : {&running.exchange, &changed.exchange}) {
        const WireCodec codec = wire_codec(*exchange);
        if (codec.gathered) {
            problems.push_back(fmt::format(
                "set: exchange.codec = \"{}\": can't be changed while the run goes on from or to {}, whose "
                "losses sites keep from the start or never",
                changed.exchange.codec, codec.name));
        }
    }
}

std::map<std::string, SettingChange> differences(RunConfig before, RunConfig after) {
    std::map<std::string, SettingChange> changes;
    for (const Key<RunConfig>& key : run_keys()) {
        const std::string old_value = value_text(key.field(before));
        const std::string new_value = value_text(key.field(after));
        if (old_value != new_value) changes[key.full_name()] = {old_value, new_value};
    }
    return changes;
}

}  // namespace

std::vector<std::string> live_settings() {
    return {kLive.begin(), kLive.end()};
}

std::string ChangedRun::describe() const {
    std::vector<std::string> words;
    for (const auto& [key, change] : changes)
        words.push_back(fmt::format("{} {} → {}", key, change.before, change.after));
    return fmt::format("{}", fmt::join(words, ", "));
}

ChangedRun change_settings(const RunConfig& running, const std::vector<std::string>& assignments) {
    std::vector<std::string> problems;
    std::vector<std::string> possible;
    for (const std::string& assignment : assignments) {
        if (is_fixed(key_of(assignment))) {
            problems.push_back(fmt::format("set: {}: can't be changed while the run goes on; these can: {}",
                                           assignment, fmt::join(kLive, ", ")));
        } else {
            possible.push_back(assignment);
        }
    }
    ChangedRun changed;
    try {
        changed.config = changed_config(running, possible);
        check_buffers(running, changed.config, problems);
    } catch (const UserError& error) {
        problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
    if (!problems.empty()) throw UserError(problems);
    changed.changes = differences(running, changed.config);
    return changed;
}

}  // namespace atl
