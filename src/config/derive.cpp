// Values that follow from others. Each derivation is told in key_table.cpp too, where users read it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/key_table.h"
#include "config/model_preset.h"
#include "config/nearest_name.h"
#include "config/rules.h"

namespace atl {
namespace {

constexpr std::int64_t kLargestDefaultMicroBatch = 8;  // sequences

// A preset gives the shape; keys beside it may only repeat it. Context and initial values are free.
void apply_preset(RunConfig& config, const Origins& origins, Problems& problems) {
    const std::string name = config.model.preset;
    if (name.empty()) return;
    const std::string& where = origins.where("model.preset");
    const std::optional<ModelConfig> preset = model_preset(name);
    if (!preset) {
        return problems.add(
            where, fmt::format("model.preset = \"{}\"", name),
            "unknown preset; nearest known preset: " + nearest_name(name, model_preset_names()));
    }
    RunConfig of_preset;
    of_preset.model = *preset;
    for (const Key<RunConfig>& key : run_keys()) {
        const std::string full = key.full_name();
        if (key.table != "model" || !origins.given(full) || key.name == "context" || key.name == "init")
            continue;
        const std::string given = value_text(key.field(config));
        const std::string expected = value_text(key.field(of_preset));
        if (given != expected)
            problems.add(origins.where(full), fmt::format("{} = {}", full, given),
                         fmt::format("contradicts model.preset = \"{}\", where it is {}", name, expected));
    }
    of_preset.model.init = config.model.init;
    if (origins.given("model.context")) of_preset.model.context = config.model.context;
    config.model = of_preset.model;
}

void derive_model(ModelConfig& model, const Origins& origins) {
    const bool gpt2 = model.kind == ModelKind::gpt2;
    if (model.kv_heads == 0) model.kv_heads = model.heads;
    if (model.ffn == 0) model.ffn = gpt2 ? 4 * model.hidden : (model.hidden * 8 / 3 + 31) / 32 * 32;
    if (gpt2 && !origins.given("model.tied")) model.tied = true;
}

void derive_island(IslandConfig& island) {
    const std::int64_t others = island.tp * island.pp * island.cp;
    if (island.ranks == 0) island.ranks = others * std::max<std::int64_t>(island.dp, 1);
    if (island.dp == 0) island.dp = std::max<std::int64_t>(island.ranks / others, 1);
    if (island.schedule.empty()) island.schedule = island.pp > 1 ? "1f1b" : "serial";
    if (island.chunks == 0) island.chunks = island.schedule == "interleaved" ? 2 : 1;
}

void derive_train(RunConfig& config, const Origins& origins) {
    TrainConfig& train = config.train;
    if (origins.given("train.micro_batch")) return;
    std::int64_t per_rank = 0;  // sequences, common to all sites
    for (const SiteConfig& site : config.sites)
        per_rank = std::gcd(per_rank, std::max<std::int64_t>(train.sequences_per_step / site.island.dp, 1));
    train.micro_batch = std::min(per_rank, kLargestDefaultMicroBatch);
    while (per_rank % train.micro_batch != 0) --train.micro_batch;
}

double outer_lr_of_method(const RunConfig& config) {
    switch (config.outer.method) {
        case OuterMethodKind::average:
        case OuterMethodKind::sparse_loco:
            return 1;
        case OuterMethodKind::adam:  // about the length of a round's Δ, which Adam divides by
            return config.optim.lr *
                   std::sqrt(static_cast<double>(std::max<std::int64_t>(config.outer.inner_steps, 1)));
        case OuterMethodKind::delayed:
            return std::round(200 * automatic_outer_lr(static_cast<std::int64_t>(config.sites.size())) / 3) / 100;
        case OuterMethodKind::diloco:
            if (config.outer.momentum == 0) return 1;
            break;
        case OuterMethodKind::eager:
            break;
    }
    return automatic_outer_lr(static_cast<std::int64_t>(config.sites.size()));
}

void derive_outer(RunConfig& config, const Origins& origins) {
    OuterConfig& outer = config.outer;
    if (!origins.given("outer.inner_steps"))
        outer.inner_steps = std::min(outer.inner_steps, config.train.steps);
    const bool average = outer.method == OuterMethodKind::average;
    const bool sparse = outer.method == OuterMethodKind::sparse_loco;
    const bool plain = average || sparse;
    const bool few = outer.method == OuterMethodKind::diloco &&
                     static_cast<std::int64_t>(config.sites.size()) < kFewestSitesWithMomentum;
    if ((plain || few) && !origins.given("outer.momentum")) outer.momentum = 0;
    if (plain && !origins.given("outer.nesterov")) outer.nesterov = false;
    if (!steps_by_momentum(outer.method) && !origins.given("outer.warmup_rounds")) outer.warmup_rounds = 0;
    if (sparse && !origins.given("exchange.codec")) config.exchange.codec = "top_k";
    if (sparse && !origins.given("exchange.error_feedback")) config.exchange.error_feedback = 0.95;
    if (outer.lr == 0) outer.lr = outer_lr_of_method(config);
}

}  // namespace

double automatic_outer_lr(std::int64_t sites) {
    const double between = static_cast<double>(std::clamp<std::int64_t>(sites, 4, 8) - 4) / 4;
    return 0.6 + 0.2 * between;
}

bool steps_by_momentum(OuterMethodKind method) {
    using enum OuterMethodKind;
    return method == diloco || method == delayed || method == eager;
}

void derive_values(RunConfig& config, const Origins& origins, Problems& problems) {
    if (config.run.directory.empty()) config.run.directory = "runs/" + config.run.name;
    apply_preset(config, origins, problems);
    derive_model(config.model, origins);
    if (config.sites.empty()) {
        config.sites.emplace_back().name = "local";
        config.sites.front().island = config.island;
    }
    std::stable_sort(config.sites.begin(), config.sites.end(),
                     [](const SiteConfig& a, const SiteConfig& b) { return a.name < b.name; });
    derive_island(config.island);
    for (SiteConfig& site : config.sites) derive_island(site.island);
    derive_train(config, origins);
    derive_outer(config, origins);
}

}  // namespace atl
