#include "config/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "config/key_table.h"
#include "core/glob.h"

namespace atl {
namespace {

constexpr std::int64_t kShardVocabulary = 65536;  // what the 16-bit tokens of shards can number

// Checks with the place and the value of a key at hand.
class Checker {
  public:
    Checker(const Origins& origins, Problems& problems) : origins_(origins), problems_(problems) {}

    template <class Value, class... Args>
    void require(bool condition, const std::string& key, const Value& value, fmt::format_string<Args...> rule,
                 Args&&... args) {
        if (condition || origins_.wrong(key)) return;
        problems_.add(origins_.where(key), fmt::format("{} = {}", key, value),
                      fmt::format(rule, std::forward<Args>(args)...));
    }
    bool given(const std::string& key) const { return origins_.given(key); }

  private:
    const Origins& origins_;
    Problems& problems_;
};

bool is_name(const std::string& text) {
    const auto allowed = [](unsigned char letter) {
        return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
    };
    return !text.empty() && text.size() <= 64 && text.front() != '.' &&
           std::all_of(text.begin(), text.end(), allowed);
}

struct Address {
    std::string host;
    int port = -1;  // −1: not an address
};

Address parse_address(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) return {};
    const char* end = text.data() + text.size();
    int port = -1;
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error != std::errc() || rest != end || port < 0 || port > 65535) return {};
    return {text.substr(0, colon), port};
}

bool is_loopback(const std::string& host) {
    return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

void check_address(Checker& check, const std::string& key, const std::string& text, SecurityMode mode) {
    const Address address = parse_address(text);
    if (address.port < 0) return check.require(false, key, text, "must be HOST:PORT, PORT 0 … 65535");
    if (is_loopback(address.host)) return;
    check.require(address.port != 0, key, text, "port 0 is for this machine only; others must know the port");
    check.require(mode == SecurityMode::insecure, key, text,
                  "listens beyond this machine, which needs security.mode = \"insecure\"");
}

void check_model(Checker& check, const RunConfig& config) {
    const ModelConfig& model = config.model;
    check.require(model.hidden % model.heads == 0, "model.heads", model.heads,
                  "must divide model.hidden = {}", model.hidden);
    check.require(model.heads % model.kv_heads == 0, "model.kv_heads", model.kv_heads,
                  "must divide model.heads = {}", model.heads);
    if (model.kind == ModelKind::llama) {
        check.require(model.hidden % model.heads != 0 || model.head_width() % 2 == 0, "model.hidden",
                      model.hidden, "hidden / heads = {} must be even: rotary embeddings turn pairs",
                      model.head_width());
    } else {
        check.require(model.kv_heads == model.heads, "model.kv_heads", model.kv_heads,
                      "must equal model.heads = {} in a gpt2 model", model.heads);
        check.require(model.tied, "model.tied", model.tied, "must be true in a gpt2 model");
    }
    if (config.data.train.empty() && config.data.validation.empty()) return;
    check.require(model.vocab <= kShardVocabulary, "model.vocab", model.vocab,
                  "must be at most {}: token shards hold 16-bit tokens", kShardVocabulary);
    check.require(config.data.end_of_text < model.vocab, "data.end_of_text", config.data.end_of_text,
                  "must be below model.vocab = {}", model.vocab);
}

// What a method leaves open and what it does not.
void check_outer_method(Checker& check, const RunConfig& config) {
    const OuterConfig& outer = config.outer;
    using enum OuterMethodKind;
    check.require(steps_by_momentum(outer.method) || outer.warmup_rounds == 0, "outer.warmup_rounds",
                  outer.warmup_rounds, "must be 0 unless outer.method = \"diloco\", \"delayed\" or \"eager\"");
    check.require(outer.momentum == 0 || (outer.method != average && outer.method != sparse_loco), "outer.momentum",
                  outer.momentum, "must be 0 with outer.method = \"average\" or \"sparse_loco\"");
    switch (outer.method) {
        case diloco:
            return;
        case adam:
            check.require(outer.inner_steps > 0 || check.given("outer.lr"), "outer.inner_steps", "\"auto\"",
                          "needs a number for outer.lr with outer.method = \"adam\": what it stands for by itself is "
                          "optim.lr · √H");
            return;
        case delayed:
        case eager:
            check.require(outer.fragments == 1, "outer.fragments", outer.fragments,
                          "must be 1: with outer.method = \"delayed\" or \"eager\" all is exchanged at once");
            check.require(outer.overlap_steps == 0, "outer.overlap_steps", outer.overlap_steps,
                          "must be 0: with outer.method = \"delayed\" or \"eager\" it is the whole round");
            check.require(outer.alpha == 0, "outer.alpha", outer.alpha,
                          "must be 0 with outer.method = \"delayed\" or \"eager\"");
            return;
        case sparse_loco:
            check.require(config.exchange.codec == "top_k", "exchange.codec", config.exchange.codec,
                          "must be top_k with outer.method = \"sparse_loco\"");
            return;
        case average:
            check.require(outer.lr == 1, "outer.lr", outer.lr, "must be 1 with outer.method = \"average\"");
            return;
    }
}

void check_training(Checker& check, const RunConfig& config) {
    const std::int64_t steps = config.train.steps;
    check.require(config.outer.inner_steps <= steps, "outer.inner_steps", config.outer.inner_steps,
                  "must be at most train.steps = {}", steps);
    check.require(config.optim.warmup_steps <= steps, "optim.warmup_steps", config.optim.warmup_steps,
                  "must be at most train.steps = {}", steps);
    const OuterConfig& outer = config.outer;
    check.require(outer.fragments <= config.model.layers, "outer.fragments", outer.fragments,
                  "must be at most model.layers = {}", config.model.layers);
    // Rounds whose length is left to the tuner have room for fragments and overlap if the run has.
    const bool automatic = outer.inner_steps == 0;
    const std::int64_t longest = automatic ? steps : outer.inner_steps;
    const char* key = automatic ? "train.steps" : "outer.inner_steps";
    check.require(outer.fragments <= longest, "outer.fragments", outer.fragments, "must be at most {} = {}", key,
                  longest);
    check.require(outer.overlap_steps < std::max<std::int64_t>(longest / outer.fragments, 1),
                  "outer.overlap_steps", outer.overlap_steps, "must be below {} / outer.fragments = {}", key,
                  longest / outer.fragments);
    check_outer_method(check, config);
}

// The pipeline stages that a schedule has; a folded one has two a rank.
std::int64_t pipeline_stages(const IslandConfig& island) {
    const bool fold = island.schedule == "dualpipev" || (island.schedule == "strands" && island.pp > 1);
    return island.pp * (fold ? 2 : island.chunks);
}

// Numbers of layers; nothing if the text is no list of them.
std::optional<std::vector<std::int64_t>> parse_stage_layers(const std::string& text) {
    std::vector<std::int64_t> layers;
    const char* end = text.data() + text.size();
    const char* next = text.data();
    while (true) {
        const auto [rest, error] = std::from_chars(next, end, layers.emplace_back());
        if (error != std::errc() || layers.back() < 0 || (rest != end && *rest != ',')) return std::nullopt;
        if (rest == end) return layers;
        next = rest + 1;
    }
}

template <class Blamed>
void check_model_cut(Checker& check, const RunConfig& config, const IslandConfig& island,
                     const Blamed& blamed) {
    const ModelConfig& model = config.model;
    check.require(island.tp <= std::min({model.heads, model.ffn, model.vocab}), blamed("tp"), island.tp,
                  "must be at most model.heads = {}", model.heads);
    const std::int64_t tokens = config.train.micro_batch * model.context;
    check.require(island.tp <= tokens, blamed("tp"), island.tp,
                  "must be at most the tokens of a micro-batch, train.micro_batch · model.context = {}",
                  tokens);
    check.require(island.chunks == 1 || island.schedule == "interleaved", blamed("chunks"), island.chunks,
                  "must be 1 unless island.schedule = \"interleaved\"");
    check.require(island.pp > 1 || island.schedule == "serial" || island.schedule == "strands",
                  blamed("schedule"), island.schedule, "needs island.pp > 1");
    const std::int64_t least = island.pp > 1 ? island.pp + 1 : 2;
    check.require(island.schedule != "strands" || island.strand_micro_batches == 0 ||
                      island.strand_micro_batches >= least,
                  blamed("strand_micro_batches"), island.strand_micro_batches,
                  "must be 0 or at least {} for strands on {} pipeline rank(s)", least, island.pp);
    const std::int64_t stages = pipeline_stages(island);
    // The first stage has the embedding and the last one the head, so these two may do without layers.
    if (island.stage_layers.empty()) {
        bool enough = true;
        for (std::int64_t stage = 1; stage + 1 < stages; ++stage)
            enough = enough && model.layers * (stage + 1) / stages > model.layers * stage / stages;
        return check.require(
            enough, blamed("pp"), island.pp,
            "has {} stages, and nearly equal numbers of model.layers = {} would leave one in the "
            "middle without any; say how many with island.stage_layers",
            stages, model.layers);
    }
    const auto layers = parse_stage_layers(island.stage_layers);
    if (!layers)
        return check.require(false, blamed("stage_layers"), island.stage_layers,
                             "must be numbers of layers with commas between, like \"3,3,2\"");
    check.require(static_cast<std::int64_t>(layers->size()) == stages, blamed("stage_layers"),
                  island.stage_layers, "must name island.pp · chunks = {} stages", stages);
    check.require(std::accumulate(layers->begin(), layers->end(), std::int64_t{0}) == model.layers,
                  blamed("stage_layers"), island.stage_layers, "must add up to model.layers = {}",
                  model.layers);
    check.require(
        layers->size() < 3 || std::find(layers->begin() + 1, layers->end() - 1, 0) == layers->end() - 1,
        blamed("stage_layers"), island.stage_layers,
        "must give every stage but the first and the last a layer");
}

// `prefix` is "island." or "site.NAME.": a site's own key is blamed where it has one.
void check_island(Checker& check, const RunConfig& config, const IslandConfig& island,
                  const std::string& prefix) {
    const auto blamed = [&](const char* key) {
        return check.given(prefix + key) ? prefix + key : std::string("island.") + key;
    };
    check.require(island.ranks == island.tp * island.pp * island.cp * island.dp, blamed("ranks"),
                  island.ranks, "must be tp · pp · cp · dp = {} · {} · {} · {} = {}", island.tp, island.pp,
                  island.cp, island.dp, island.tp * island.pp * island.cp * island.dp);
    check.require(island.cp == 1, blamed("cp"), island.cp,
                  "must be 1: context parallelism is not available in this build yet");
    const bool muon = config.optim.kind == OptimKind::muon;
    check.require(!muon || island.tp == 1, blamed("tp"), island.tp,
                  "must be 1 with optim.kind = \"muon\", which steps whole matrices");
    check.require(!muon || !island.zero, blamed("zero"), "true",
                  "must be false with optim.kind = \"muon\", which steps whole matrices");
    check_model_cut(check, config, island, blamed);
    check.require(island.device == Device::cpu, blamed("device"), "\"cuda\"",
                  "must be cpu: this build has no CUDA");
}

void check_micro_batch(Checker& check, const TrainConfig& train, std::int64_t dp, const std::string& who) {
    check.require(train.sequences_per_step % (train.micro_batch * dp) == 0, "train.sequences_per_step",
                  train.sequences_per_step, "must be a multiple of train.micro_batch · dp = {} · {} ({})",
                  train.micro_batch, dp, who);
}

// Two can't listen in one place, and those who look for one would find the other.
void check_distinct_addresses(Checker& check, const RunConfig& config) {
    std::map<std::string, std::string> users{{config.coordinator.address, "the coordinator"}};
    for (const SiteConfig& site : config.sites) {
        if (parse_address(site.address).port <= 0) continue;  // any free port
        const auto [user, added] = users.emplace(site.address, "site " + site.name);
        check.require(added, "site." + site.name + ".address", site.address, "{} has this address", user->second);
    }
}

void check_sites(Checker& check, const RunConfig& config) {
    std::set<std::string> seen;
    for (const SiteConfig& site : config.sites) {
        const std::string prefix = "site." + site.name + ".";
        if (site.name.empty()) continue;  // reported where it stands
        const std::string key = prefix + "name";
        check.require(is_name(site.name), key, site.name, "must be 1 to 64 letters, digits, '-', '_' or '.'");
        check.require(seen.insert(site.name).second, key, site.name, "another site has this name");
        check_address(check, prefix + "address", site.address, config.security.mode);
        const std::int64_t steps = config.outer.inner_steps;
        check.require(site.inner_steps == 0 || steps > 0, prefix + "inner_steps", site.inner_steps,
                      "needs a number of outer.inner_steps instead of \"auto\"");
        check.require(site.inner_steps <= steps || steps == 0, prefix + "inner_steps", site.inner_steps,
                      "must be at most outer.inner_steps = {}", steps);
        check.require(site.inner_steps == 0 || config.outer.fragments == 1, prefix + "inner_steps",
                      site.inner_steps, "must be 0 with several outer.fragments");
        if (site.island != config.island) check_island(check, config, site.island, prefix);
        if (site.island.dp != config.island.dp)
            check_micro_batch(check, config.train, site.island.dp, "site " + site.name);
    }
    const auto sites = static_cast<std::int64_t>(config.sites.size());
    check.require(config.exchange.min_sites <= sites, "exchange.min_sites", config.exchange.min_sites,
                  "must be at most the number of sites = {}", sites);
}

// A wait must outlast what it waits for, or the wrong part is blamed.
void check_timeouts(Checker& check, const TimeoutsConfig& timeouts) {
    struct Pair {
        const char* shorter;
        std::int64_t shorter_ms;
        const char* longer;
        std::int64_t longer_ms;
    };
    const Pair pairs[] = {
        {"heartbeat_ms", timeouts.heartbeat_ms, "progress_ms", timeouts.progress_ms},
        {"heartbeat_ms", timeouts.heartbeat_ms, "reconnect_ms", timeouts.reconnect_ms},
        {"disconnect_ms", timeouts.disconnect_ms, "reconnect_ms", timeouts.reconnect_ms},
        {"progress_ms", timeouts.progress_ms, "exchange_ms", timeouts.exchange_ms},
        {"exchange_ms", timeouts.exchange_ms, "island_ms", timeouts.island_ms},
        {"reconnect_ms", timeouts.reconnect_ms, "quorum_ms", timeouts.quorum_ms},
    };
    for (const Pair& pair : pairs)
        check.require(pair.shorter_ms < pair.longer_ms, std::string("timeouts.") + pair.shorter,
                      pair.shorter_ms, "must be below timeouts.{} = {}", pair.longer, pair.longer_ms);
}

void check_strand_files(Checker& check, const IslandConfig& island, const std::string& prefix) {
    const auto require_file = [&](const char* key, const std::string& file, const char* rule) {
        const std::string own = prefix + key;
        check.require(!glob(file).empty(), check.given(own) ? own : std::string("island.") + key,
                      "\"" + file + "\"", "{}", rule);
    };
    if (!island.plan.empty()) require_file("plan", island.plan, "no such file");
    if (island.names_profile_file())
        require_file("profile", island.profile, "must be measure, model or a file: no such file");
}

void check_patterns(Checker& check, const std::string& key, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
        const auto paths = glob(pattern);
        check.require(!paths.empty(), key, "\"" + pattern + "\"", "no such file");
        for (const auto& path : paths) {
            std::error_code error;
            check.require(std::filesystem::is_regular_file(path, error), key, "\"" + pattern + "\"",
                          "{} is no file of token shards", path.string());
        }
    }
}

}  // namespace

void check_combinations(const RunConfig& config, const Origins& origins, Problems& problems) {
    Checker check(origins, problems);
    check.require(is_name(config.run.name), "run.name", "\"" + config.run.name + "\"",
                  "must be 1 to 64 letters, digits, '-', '_' or '.'");
    check_model(check, config);
    check_training(check, config);
    check_island(check, config, config.island, "island.");
    check_micro_batch(check, config.train, config.island.dp, "[island]");
    check_sites(check, config);
    check_distinct_addresses(check, config);
    check_address(check, "coordinator.address", config.coordinator.address, config.security.mode);
    check_timeouts(check, config.timeouts);
}

void check_files(const RunConfig& config, const Origins& origins, Problems& problems) {
    Checker check(origins, problems);
    check_patterns(check, "data.train", config.data.train);
    check_patterns(check, "data.validation", config.data.validation);
    std::error_code error;
    if (config.model.init != "random")
        check.require(std::filesystem::is_directory(config.model.init, error), "model.init", "\"" + config.model.init + "\"",
                      "must be \"random\" or the directory of a checkpoint: no such directory");
    check_strand_files(check, config.island, "island.");
    for (const SiteConfig& site : config.sites)
        if (site.island != config.island) check_strand_files(check, site.island, "site." + site.name + ".");
}

}  // namespace atl
