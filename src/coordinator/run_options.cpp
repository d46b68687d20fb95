#include "coordinator/run_options.h"

#include <algorithm>
#include <array>
#include <ranges>

#include "config/key_table.h"
#include "config/wire_codec.h"
#include "outer/method.h"
#include "outer/tuner.h"

namespace atl {
namespace {

constexpr std::array<std::string_view, 7> kSharedTables{"run",   "model", "data",    "train",
                                                        "optim", "outer", "exchange"};
// Paths, which may differ from machine to machine, and what only the coordinator decides.
constexpr std::array<std::string_view, 5> kOwnKeys{"run.directory", "model.init", "data.train",
                                                   "data.validation", "train.steps"};

template <class List>
bool contains(const List& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

std::string text_setting(const std::map<std::string, std::string>& settings, const std::string& key) {
    std::string text = settings.at(key);
    std::erase(text, '"');
    return text;
}

}  // namespace

std::map<std::string, std::string> shared_settings(const RunConfig& config) {
    RunConfig copy = config;
    std::map<std::string, std::string> settings;
    for (const Key<RunConfig>& key : run_keys()) {
        const std::string name = key.full_name();
        if (contains(kSharedTables, key.table) && !contains(kOwnKeys, name)) {
            settings[name] = value_text(key.field(copy));
        }
    }
    return settings;
}

RunNumbers run_numbers(const RunConfig& config) {
    RunNumbers numbers;
    numbers.method.method = text_setting(shared_settings(config), "outer.method");
    const WireCodec codec = wire_codec(config.exchange);
    numbers.method.codec = codec.name;
    const OuterMethod& method = outer_method(numbers.method.method);
    numbers.gather = codec.gathered || method.combine() == Combine::gather;
    numbers.a_round_late = method.is_a_round_late();
    numbers.method.outer_lr = config.outer.lr;
    numbers.method.outer_momentum = config.outer.momentum;
    numbers.method.nesterov = config.outer.nesterov;
    numbers.method.second_decay = config.outer.beta2;
    numbers.method.epsilon = config.outer.epsilon;
    numbers.method.alpha = config.outer.alpha;
    numbers.method.overlap_steps = config.outer.overlap_steps;
    numbers.inner_steps = config.outer.inner_steps;
    numbers.automatic_inner_steps = config.outer.inner_steps == 0;
    if (numbers.automatic_inner_steps) {
        // The shortest round that leaves room for the overlap: what it costs tells more than a guess.
        const StreamChoice stream{config.outer.fragments, config.outer.overlap_steps, numbers.a_round_late};
        const auto candidates = inner_step_candidates(config.train.steps);
        const auto first = std::ranges::find_if(candidates, [&](std::int64_t steps) { return fits(stream, steps); });
        // A run too short for any of them has rounds as short as its fragments and overlap allow.
        numbers.inner_steps =
            first != candidates.end() ? *first : (stream.overlap_steps + 1) * stream.fragments;
    }
    numbers.warmup_rounds = config.outer.warmup_rounds;
    for (std::size_t i = 0; i < config.sites.size(); ++i) {
        const std::int64_t own_steps = config.sites[i].inner_steps;
        if (own_steps > 0 && own_steps < numbers.inner_steps) numbers.site_inner_steps[SiteId(std::int32_t(i))] = own_steps;
    }
    numbers.total_steps = config.train.steps;
    numbers.checkpoint_interval = config.checkpoint.interval;
    numbers.evaluate_interval = config.monitor.eval_interval;
    return numbers;
}

CoordinatorOptions coordinator_options(const RunConfig& config, std::optional<Step> stop_at) {
    CoordinatorOptions options;
    options.run_id = config.run.name;
    for (const SiteConfig& site : config.sites) options.site_names.push_back(site.name);
    options.settings = shared_settings(config);
    options.min_sites = config.exchange.min_sites;
    options.numbers = run_numbers(config);
    options.numbers.stop_at = stop_at;
    CoordinatorTimeouts& timeouts = options.timeouts;
    timeouts.disconnect = Milliseconds(config.timeouts.disconnect_ms);
    timeouts.progress = Milliseconds(config.timeouts.progress_ms);
    timeouts.reconnect = Milliseconds(config.timeouts.reconnect_ms);
    timeouts.quorum = Milliseconds(config.timeouts.quorum_ms);
    timeouts.join = Milliseconds(config.timeouts.startup_ms);
    return options;
}

}  // namespace atl
