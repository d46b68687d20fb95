#include "config/key_table.h"

#include <array>

namespace atl {
namespace {

constexpr double kDayMs = 86'400'000;

constexpr std::array<std::string_view, 2> kModelKinds = {"llama", "gpt2"};
constexpr std::array<std::string_view, 3> kOptimKinds = {"adamw", "sgd", "muon"};
constexpr std::array<std::string_view, 3> kSchedules = {"constant", "cosine", "wsd"};
constexpr std::array<std::string_view, 6> kOuterMethods = {"diloco",      "average", "adam",
                                                           "sparse_loco", "delayed", "eager"};
constexpr std::array<std::string_view, 8> kCodecs = {"identity", "fp16", "bf16", "int8",
                                                     "int4",     "e3m0", "sign", "top_k"};
constexpr std::array<std::string_view, 2> kJoinerMoments = {"donor", "zero"};
constexpr std::array<std::string_view, 4> kTransports = {"auto", "tcp", "zmq", "gloo"};
constexpr std::array<std::string_view, 2> kDevices = {"cpu", "cuda"};
constexpr std::array<std::string_view, 8> kPipelines = {
    "serial", "gpipe", "1f1b", "interleaved", "zero_bubble", "zero_bubble_wide", "dualpipev", "strands"};
constexpr std::array<std::string_view, 2> kStrandOrders = {"planned", "alternating"};
constexpr std::array<std::string_view, 3> kExecutors = {"event", "barrier", "serial"};
constexpr std::array<std::string_view, 2> kSecurityModes = {"loopback", "insecure"};

// Enumerations are one byte wide and count from 0 in the order of their names, so a field is that byte.
template <class Enum>
Field choice(Enum& value, std::span<const std::string_view> names) {
    static_assert(sizeof(Enum) == 1);
    return ChoiceField{reinterpret_cast<unsigned char*>(&value), names};
}

template <class Owner>
constexpr Key<Owner> flag(std::string_view table, std::string_view name, Field (*field)(Owner&),
                          std::string_view description, std::string_view derived = {}) {
    return {{.table = table, .name = name, .unit = "", .description = description, .derived = derived},
            field};
}

template <class Owner>
constexpr Key<Owner> number(std::string_view table, std::string_view name, std::string_view unit,
                            double minimum, double maximum, Field (*field)(Owner&),
                            std::string_view description, std::string_view derived = {}) {
    return {{.table = table,
             .name = name,
             .unit = unit,
             .description = description,
             .minimum = minimum,
             .maximum = maximum,
             .derived = derived},
            field};
}

template <class Owner>
constexpr Key<Owner> text(std::string_view table, std::string_view name, Field (*field)(Owner&),
                          std::string_view description, std::string_view derived = {},
                          std::span<const std::string_view> names = {}) {
    return {{.table = table,
             .name = name,
             .unit = "",
             .description = description,
             .derived = derived,
             .names = names},
            field};
}

#define FIELD(Owner, member) +[](Owner& owner) -> Field { return &owner.member; }
#define CHOICE(Owner, member, names) +[](Owner& owner) -> Field { return choice(owner.member, names); }
#define RUN(member) FIELD(RunConfig, member)
#define ISLAND(member) FIELD(IslandConfig, member)

const auto kRunKeys = std::to_array<Key<RunConfig>>({
    text("run", "name", RUN(run.name), "letters, digits, '-', '_' and '.'; names the run directory"),
    number("run", "seed", "", 0, kUnbounded, RUN(run.seed), "of initial values and data order"),
    text("run", "directory", RUN(run.directory), "where logs, metrics and checkpoints go", "runs/NAME"),

    text("model", "kind", CHOICE(RunConfig, model.kind, kModelKinds), "architecture",
         "of the preset, or llama"),
    text("model", "preset", RUN(model.preset), "a known shape in place of the keys below; \"\" for none"),
    number("model", "layers", "", 1, 1000, RUN(model.layers), "transformer blocks"),
    number("model", "hidden", "elements", 1, 1e6, RUN(model.hidden), "width of the residual stream"),
    number("model", "heads", "", 1, 1e4, RUN(model.heads), "query heads; must divide hidden"),
    number("model", "kv_heads", "", 1, 1e4, RUN(model.kv_heads), "key and value heads; must divide heads",
           "heads"),
    number("model", "ffn", "elements", 1, 1e7, RUN(model.ffn), "width of the feed-forward layer",
           "8/3 hidden rounded up to 32 (llama), 4 hidden (gpt2)"),
    number("model", "vocab", "tokens", 2, 1e7, RUN(model.vocab),
           "rows of the embedding; more than the tokenizer uses is padding"),
    number("model", "context", "tokens", 1, 1e7, RUN(model.context), "length of a sequence"),
    flag("model", "tied", RUN(model.tied), "embedding and output share one tensor",
         "false (llama), true (gpt2)"),
    text("model", "init", RUN(model.init), "\"random\", or the directory of a checkpoint to begin from"),
    number("model", "norm_epsilon", "", 1e-12, 1, RUN(model.norm_epsilon), "added to the variance in norms"),
    number("model", "rope_theta", "", 1, 1e9, RUN(model.rope_theta),
           "base of the rotary frequencies (llama)"),

    text("data", "train", RUN(data.train), "token shards to train on: a path or glob, or a list of them"),
    text("data", "validation", RUN(data.validation), "held-out token shards, likewise; none = no evaluation"),
    number("data", "end_of_text", "token", 0, 65535, RUN(data.end_of_text),
           "the token that opens every document; 50256 for GPT-2's tokenizer"),

    number("train", "steps", "steps", 1, kUnbounded, RUN(train.steps), "inner steps of the whole run"),
    number("train", "sequences_per_step", "sequences", 1, 1e6, RUN(train.sequences_per_step),
           "what one site trains on in one inner step"),
    number("train", "micro_batch", "sequences", 1, 1e6, RUN(train.micro_batch),
           "what one rank computes at once; micro_batch · dp must divide sequences_per_step",
           "the largest that fits, up to 8"),

    text("optim", "kind", CHOICE(RunConfig, optim.kind, kOptimKinds),
         "inner optimizer; muon steps the matrices inside layers and leaves norms, biases, embeddings and head to AdamW"),
    number("optim", "lr", "", 0, 100, RUN(optim.lr), "inner learning rate at its highest"),
    number("optim", "warmup_steps", "steps", 0, kUnbounded, RUN(optim.warmup_steps),
           "linear rise from 0 to lr"),
    text("optim", "schedule", CHOICE(RunConfig, optim.schedule, kSchedules),
         "after the warm-up; wsd = stable, then a linear decay"),
    number("optim", "final_lr_fraction", "of lr", 0, 1, RUN(optim.final_lr_fraction),
           "where cosine and wsd end"),
    number("optim", "decay_fraction", "of steps", 0, 1, RUN(optim.decay_fraction), "length of wsd's decay"),
    number("optim", "momentum", "", 0, 0.999999, RUN(optim.momentum), "Muon: decay of the momentum"),
    number("optim", "beta1", "", 0, 0.999999, RUN(optim.beta1), "AdamW: decay of the first moment"),
    number("optim", "beta2", "", 0, 0.999999, RUN(optim.beta2), "AdamW: decay of the second moment"),
    number("optim", "epsilon", "", 0, 1, RUN(optim.epsilon), "AdamW: added to the root of the second moment"),
    number("optim", "weight_decay", "", 0, 10, RUN(optim.weight_decay),
           "decoupled; none on norms and biases"),
    number("optim", "grad_clip", "", 0, 1e6, RUN(optim.grad_clip), "largest global gradient norm; 0 = any"),

    text("outer", "method", CHOICE(RunConfig, outer.method, kOuterMethods),
         "diloco = Nesterov on the mean pseudo-gradient; average = the mean of the sites; adam = Adam on it; sparse_loco = "
         "the mean of the largest values, the others kept for later; delayed = diloco with each exchange beside the "
         "whole next round; eager = so too, but a site's own part counts at once"),
    number(
        "outer", "inner_steps", "steps", 1, kUnbounded,
        +[](RunConfig& run) -> Field { return AutomaticField{&run.outer.inner_steps}; },
        "inner steps in a round (H); auto = what the tuner finds best for the links as they are, round by "
        "round",
        "50, or train.steps if fewer"),
    number("outer", "lr", "", 0, 10, RUN(outer.lr), "outer learning rate, or \"auto\"",
           "auto: 1 without momentum; else 0.6 up to 4 sites, 0.8 from 8, between them interpolated, and two thirds of it for "
           "delayed; optim.lr · √H for adam"),
    number("outer", "momentum", "", 0, 0.999999, RUN(outer.momentum), "outer momentum",
           "0 for diloco with fewer than 8 sites (the mean of the sites), average and sparse_loco; else 0.9"),
    flag("outer", "nesterov", RUN(outer.nesterov), "Nesterov's form of the outer momentum"),
    number("outer", "beta2", "", 0, 0.999999, RUN(outer.beta2), "adam: decay of the second moment"),
    number("outer", "epsilon", "", 0, 1, RUN(outer.epsilon), "adam: added to the root of the second moment"),
    number("outer", "warmup_rounds", "rounds", 0, 1e6, RUN(outer.warmup_rounds),
           "in so many rounds sites are only averaged; in as many more lr and momentum rise to theirs"),
    number("outer", "fragments", "", 1, 1000, RUN(outer.fragments), "sets of tensors exchanged apart"),
    number("outer", "overlap_steps", "steps", 0, kUnbounded, RUN(outer.overlap_steps),
           "inner steps between a fragment's start and its application (τ)"),
    number("outer", "alpha", "", 0, 1, RUN(outer.alpha), "share of a site's own parameters that it keeps"),

    text("exchange", "codec", RUN(exchange.codec), "how pseudo-gradients are written on the wire", {},
         kCodecs),
    number("exchange", "top_k_fraction", "of values", 0.0001, 1, RUN(exchange.top_k_fraction),
           "what top_k keeps of each 4096 values, the largest"),
    number("exchange", "error_feedback", "", 0, 1, RUN(exchange.error_feedback),
           "share of what sign and top_k lost in a round that goes into the next; 0 = none"),
    text("exchange", "transport", RUN(exchange.transport), "how sites reach one another", {}, kTransports),
    number("exchange", "connections", "", 1, 64, RUN(exchange.connections),
           "TCP connections per pair of sites, where one can't fill the path"),
    flag("exchange", "shared_memory", RUN(exchange.shared_memory),
         "packets between sites of one host go through memory that both see (tcp, one connection per pair)"),
    flag("exchange", "zstd", RUN(exchange.zstd), "compress packets that become smaller by it"),
    number("exchange", "min_sites", "sites", 1, 1e4, RUN(exchange.min_sites),
           "with fewer left, nothing is applied and the sites wait"),
    text("exchange", "joiner_moments", RUN(exchange.joiner_moments),
         "inner moments of a site that joins a running run: of another site's newest checkpoint, or zero", {},
         kJoinerMoments),

    text("coordinator", "address", RUN(coordinator.address),
         "HOST:PORT it listens on and sites reach it at; port 0 = any free one (this machine only)"),

    number("checkpoint", "interval", "steps", 0, kUnbounded, RUN(checkpoint.interval),
           "between checkpoints; 0 = only at the end and at stops"),
    number("checkpoint", "keep", "checkpoints", 2, 1e6, RUN(checkpoint.keep),
           "newest ones that stay on disk"),

    number("monitor", "log_interval", "steps", 1, kUnbounded, RUN(monitor.log_interval),
           "between lines of the log"),
    number("monitor", "eval_interval", "rounds", 0, kUnbounded, RUN(monitor.eval_interval),
           "between evaluations; 0 = only after the last round"),
    number("monitor", "eval_windows", "windows", 0, kUnbounded, RUN(monitor.eval_windows),
           "how much of data.validation is read, in windows of model.context tokens; 0 = all"),

    number("timeouts", "heartbeat_ms", "ms", 1, kDayMs, RUN(timeouts.heartbeat_ms),
           "between a site's signs of life"),
    number("timeouts", "disconnect_ms", "ms", 1, kDayMs, RUN(timeouts.disconnect_ms),
           "a broken connection older than this is a lost site"),
    number("timeouts", "reconnect_ms", "ms", 1, kDayMs, RUN(timeouts.reconnect_ms),
           "for so long after a coordinator's start no site is lost"),
    number("timeouts", "progress_ms", "ms", 1, kDayMs, RUN(timeouts.progress_ms),
           "a site that lives but makes no progress for so long is lost"),
    number("timeouts", "exchange_ms", "ms", 1, kDayMs, RUN(timeouts.exchange_ms),
           "one attempt of a round's exchange"),
    number("timeouts", "island_ms", "ms", 1, kDayMs, RUN(timeouts.island_ms),
           "one collective between the ranks of an island"),
    number("timeouts", "quorum_ms", "ms", 1, kDayMs, RUN(timeouts.quorum_ms),
           "waiting for exchange.min_sites before the run gives up"),
    number("timeouts", "startup_ms", "ms", 1, kDayMs, RUN(timeouts.startup_ms),
           "from a process's start to its first sign of life"),

    text("security", "mode", CHOICE(RunConfig, security.mode, kSecurityModes),
         "loopback = nothing listens beyond this machine; insecure = anybody who reaches a port is believed"),
});

const auto kIslandKeys = std::to_array<Key<IslandConfig>>({
    number("island", "ranks", "processes", 1, 1e5, ISLAND(ranks), "of the island", "tp · pp · cp · dp"),
    number("island", "tp", "ranks", 1, 1e4, ISLAND(tp), "tensor parallel degree"),
    number("island", "pp", "ranks", 1, 1e4, ISLAND(pp), "pipeline parallel degree"),
    number("island", "cp", "ranks", 1, 1e4, ISLAND(cp), "context parallel degree"),
    number("island", "dp", "ranks", 1, 1e5, ISLAND(dp), "data parallel degree", "ranks / (tp · pp · cp)"),
    text("island", "schedule", ISLAND(schedule), "order of micro-batches and pipeline stages",
         "\"1f1b\" for pp > 1, else \"serial\"", kPipelines),
    number("island", "chunks", "stages", 0, 1e4, ISLAND(chunks), "pipeline stages of a rank",
           "2 for an interleaved schedule, else 1"),
    text("island", "stage_layers", ISLAND(stage_layers),
         "layers of each pipeline stage, \"3,3,2\"; \"\" = nearly equal numbers"),
    number("island", "strand_micro_batches", "", 0, 1e6, ISLAND(strand_micro_batches),
           "micro-batches whose activations strands may hold at once; 0 = as few as they can"),
    text("island", "strand_order", ISLAND(strand_order),
         "of the ops of two strands: by a plan that all ranks agree on, or by turns", {}, kStrandOrders),
    text("island", "plan", ISLAND(plan), "a file of \"atoll plan --out\" to run strands by; \"\" = a plan made at the start"),
    text("island", "profile", ISLAND(profile),
         "times of ops that plans are made from: measure = at the start, on these ranks; model = of typical "
         "machines; or a file of \"atoll bench --profile\""),
    flag("island", "zero", ISLAND(zero), "split the optimizer's state over the data-parallel ranks (ZeRO-1)"),
    text(
        "island", "executor", ISLAND(executor),
        "event = an op starts when its inputs are there; barrier = all meet after each segment; serial = one "
        "after another",
        {}, kExecutors),
    number("island", "threads", "threads", 0, 4096, ISLAND(threads),
           "of one rank; 0 = the machine's processors shared by its ranks"),
    text("island", "device", CHOICE(IslandConfig, device, kDevices), "where a rank computes"),
    number("island", "restarts", "", 0, 1e6, ISLAND(restarts), "of the island before its site is given up"),
});

const auto kSiteKeys = std::to_array<Key<SiteConfig>>({
    text("site", "name", FIELD(SiteConfig, name), "letters, digits, '-', '_' and '.'; once in a run",
         "required; without any [[site]] there is one, \"local\""),
    text("site", "address", FIELD(SiteConfig, address), "HOST:PORT at which other sites reach its gateway"),
    number("site", "inner_steps", "steps", 0, kUnbounded, FIELD(SiteConfig, inner_steps),
           "its part of a round's inner steps, for a slower site, which weighs as much in the mean; 0 = "
           "outer.inner_steps"),
});

#undef FIELD
#undef CHOICE
#undef RUN
#undef ISLAND

constexpr auto kAliases = std::to_array<KeyAlias>({
    {"outer.local_steps", "outer.inner_steps"},
    {"outer.sync_every", "outer.inner_steps"},
});

}  // namespace

std::string KeyText::full_name() const {
    return std::string(table) + "." + std::string(name);
}

std::span<const Key<RunConfig>> run_keys() {
    return kRunKeys;
}
std::span<const Key<IslandConfig>> island_keys() {
    return kIslandKeys;
}
std::span<const Key<SiteConfig>> site_keys() {
    return kSiteKeys;
}
std::span<const KeyAlias> key_aliases() {
    return kAliases;
}

}  // namespace atl
