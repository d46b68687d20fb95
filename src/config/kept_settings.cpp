#include "config/kept_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/key_table.h"
#include "config/wire_codec.h"

namespace atl {
namespace {

constexpr std::array<std::string_view, 21> kKept{
    "run.name",      "run.seed",           "model.kind",       "model.layers",     "model.hidden",
    "model.heads",   "model.kv_heads",     "model.ffn",        "model.vocab",      "model.context",
    "model.tied",    "model.norm_epsilon", "model.rope_theta", "data.end_of_text", "train.sequences_per_step",
    "optim.kind",    "outer.method",       "outer.fragments",  "outer.momentum",   "exchange.codec",
    "exchange.error_feedback"};

constexpr const char* kSites = "site";

// Of the codecs whose losses are made up for later.
bool has_losses(const KeptSettings& settings) {
    const auto codec = settings.find("exchange.codec");
    if (codec == settings.end()) return false;
    ExchangeConfig exchange;
    exchange.codec = codec->second;
    std::erase(exchange.codec, '"');
    return wire_codec(exchange).gathered;
}

// The part of a value that must stay: all of it, or whether sites keep a buffer for it.
std::string essence(const std::string& key, const KeptSettings& settings) {
    const std::string& value = settings.at(key);
    const auto whether = [](bool kept) { return std::string(kept ? "kept" : "not kept"); };
    if (key == "outer.momentum") return whether(value != "0.0");
    if (key == "exchange.codec") return whether(has_losses(settings));
    if (key == "exchange.error_feedback") return whether(has_losses(settings) && value != "0.0");
    return value;
}

// Is one list the beginning of the other?
bool goes_on_as(const std::string& one, const std::string& other) {
    const auto& [shorter, longer] = std::minmax(one, other, [](const std::string& a, const std::string& b) {
        return a.size() < b.size();
    });
    return longer.starts_with(shorter);
}

}  // namespace

KeptSettings kept_settings(const RunConfig& config) {
    RunConfig copy = config;
    KeptSettings settings;
    for (const SiteConfig& site : config.sites) settings[kSites] += site.name + ";";
    for (const Key<RunConfig>& key : run_keys()) {
        const std::string name = key.full_name();
        if (std::ranges::find(kKept, name) != kKept.end()) settings[name] = value_text(key.field(copy));
    }
    return settings;
}

std::vector<std::string> unkept_settings(const KeptSettings& run, const KeptSettings& now) {
    std::vector<std::string> differences;
    for (const auto& [key, value] : now) {
        if (!run.contains(key) || run.at(key) == value) continue;
        if (key == kSites) {
            if (!goes_on_as(run.at(key), value))
                differences.push_back(fmt::format(
                    "[[site]] {} the run has {} their numbers follow the order of their names and must stay: "
                    "add sites behind the others, or leave out the last",
                    value, run.at(key)));
            continue;
        }
        if (essence(key, run) != essence(key, now))
            differences.push_back(fmt::format("{} = {}: the run has {}", key, value, run.at(key)));
    }
    return differences;
}

}  // namespace atl
