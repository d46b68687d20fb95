// A run as its TOML file describes it: one struct per table, resolved and checked by load_config.
//
// Units stand in the names or beside the field; ranges, descriptions and the defaults of what is not given a
// number here stand in key_table.cpp, which configs/README.md is checked against. A value of 0 or "" that the
// key table calls derived never survives load_config. Plain data: copy it, compare it, no invariants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace atl {

struct RunTable {
    std::string name = "run";
    std::int64_t seed = 1;
    std::string directory;  // derived: runs/NAME

    bool operator==(const RunTable&) const = default;
};

enum class ModelKind : std::uint8_t { llama, gpt2 };

struct ModelConfig {
    ModelKind kind = ModelKind::llama;
    std::string preset;  // "" = the shape below
    std::int64_t layers = 4;
    std::int64_t hidden = 256;  // elements
    std::int64_t heads = 4;
    std::int64_t kv_heads = 0;    // derived: heads
    std::int64_t ffn = 0;         // elements; derived: 8/3 hidden rounded up to 32 (llama), 4 hidden (gpt2)
    std::int64_t vocab = 257;     // rows of the embedding; may be padded above what the tokenizer uses
    std::int64_t context = 256;   // tokens
    bool tied = false;            // one tensor for embedding and output; gpt2 always
    std::string init = "random";  // or the directory of a checkpoint
    double norm_epsilon = 1e-5;
    double rope_theta = 10000.0;

    std::int64_t head_width() const { return hidden / heads; }
    bool operator==(const ModelConfig&) const = default;
};

struct DataConfig {
    std::vector<std::string> train;       // token shards: paths or globs
    std::vector<std::string> validation;  // the same; none = no evaluation
    std::int64_t end_of_text = 256;       // the token that opens every document

    bool operator==(const DataConfig&) const = default;
};

struct TrainConfig {
    std::int64_t steps = 1000;            // inner steps of the whole run
    std::int64_t sequences_per_step = 8;  // per site
    std::int64_t micro_batch = 8;         // sequences

    bool operator==(const TrainConfig&) const = default;
};

enum class OptimKind : std::uint8_t { adamw, sgd, muon };  // muon: of matrices inside layers, adamw of the rest
enum class LearningRateSchedule : std::uint8_t { constant, cosine, wsd };  // wsd: warm-up, stable, decay

struct OptimConfig {
    OptimKind kind = OptimKind::adamw;
    double lr = 1e-3;
    std::int64_t warmup_steps = 0;
    LearningRateSchedule schedule = LearningRateSchedule::cosine;
    double final_lr_fraction = 0.1;  // of lr, at the last step
    double decay_fraction = 0.2;     // of the steps, at the end; wsd only
    double momentum = 0.95;  // of muon
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double weight_decay = 0.1;
    double grad_clip = 1.0;  // global norm; 0 = no clipping

    bool operator==(const OptimConfig&) const = default;
};

enum class OuterMethodKind : std::uint8_t { diloco, average, adam, sparse_loco, delayed, eager };

struct OuterConfig {
    OuterMethodKind method = OuterMethodKind::diloco;
    std::int64_t inner_steps = 50;  // H; 0: "auto", the tuner's choice
    double lr = 0.0;                // derived ("auto"): 1 without momentum, else 0.6 up to 4 sites, 0.8 from 8
    double momentum = 0.9;          // derived ("auto"): 0 for diloco with fewer than 8 sites
    bool nesterov = true;
    double beta2 = 0.99;             // of adam
    double epsilon = 1e-3;           // of adam, on the scale of a round's Δ
    std::int64_t warmup_rounds = 20;  // of averaging; in as many after them lr and momentum come to theirs
    std::int64_t fragments = 1;
    std::int64_t overlap_steps = 0;  // τ, inner steps between a fragment's start and its application
    double alpha = 0.0;              // share of θ_local kept when θ_outer is applied

    bool operator==(const OuterConfig&) const = default;
};

struct ExchangeConfig {
    std::string codec = "int8";        // of contributions; wire_codec.h gives its whole name
    double top_k_fraction = 0.015625;  // of the values top_k keeps: 64 of 4096
    double error_feedback = 1.0;       // β: share of what sign and top_k lost that is sent in the next round
    std::string transport = "auto";    // tcp, or zmq where what travels is to be encrypted
    std::int64_t connections = 1;      // per pair of sites
    bool shared_memory = true;         // between sites of one host; tcp with one connection
    bool zstd = true;                  // where it makes packets smaller
    std::int64_t min_sites = 1;        // fewer left: nothing is applied
    std::string joiner_moments = "donor";  // inner moments a site begins with that joins a running run; or zero

    bool operator==(const ExchangeConfig&) const = default;
};

inline constexpr const char* kMeasureProfile = "measure";
inline constexpr const char* kModelProfile = "model";

struct IslandConfig {
    std::int64_t ranks = 0;  // processes; derived: tp · pp · cp · dp
    std::int64_t tp = 1;
    std::int64_t pp = 1;
    std::int64_t cp = 1;
    std::int64_t dp = 0;       // derived: ranks / (tp · pp · cp)
    std::string schedule;      // derived: "1f1b" for pp > 1, else "serial"
    std::int64_t chunks = 0;   // pipeline stages of a rank; derived: 2 for an interleaved schedule, else 1
    std::string stage_layers;  // "3,3,2": of each pipeline stage; "" = nearly equal numbers
    std::string strand_order = "planned";  // or alternating
    std::string plan;                      // a file of `atoll plan` or of another run; "" = made at the start
    std::string profile = "measure";       // what plans are made from; or model, or a file
    std::int64_t strand_micro_batches = 0;  // whose activations strands may hold at once; 0 = the least
    bool zero = false;                      // optimizer state split over data-parallel ranks (ZeRO-1)
    std::string executor = "event";
    std::int64_t threads = 0;  // per rank; 0 = the machine's processors divided by its ranks
    Device device = Device::cpu;
    std::int64_t restarts = 3;  // of the island in one run

    bool names_profile_file() const { return profile != kMeasureProfile && profile != kModelProfile; }
    bool operator==(const IslandConfig&) const = default;
};

struct SiteConfig {
    std::string name;
    std::string address = "127.0.0.1:0";  // where its gateway listens to other sites; port 0 = any free one
    std::int64_t inner_steps = 0;         // of its own in a round; 0: outer.inner_steps
    IslandConfig island;                  // [island] with this site's overrides

    bool operator==(const SiteConfig&) const = default;
};

struct CoordinatorConfig {
    std::string address = "127.0.0.1:0";  // port 0 = any free one, written to the run directory

    bool operator==(const CoordinatorConfig&) const = default;
};

struct CheckpointConfig {
    std::int64_t interval = 500;  // steps; 0 = only at the end and at stops
    std::int64_t keep = 2;        // newest ones

    bool operator==(const CheckpointConfig&) const = default;
};

struct MonitorConfig {
    std::int64_t log_interval = 10;   // steps
    std::int64_t eval_interval = 1;   // rounds; 0 = only after the last
    std::int64_t eval_windows = 256;  // windows of `model.context` tokens; 0 = all

    bool operator==(const MonitorConfig&) const = default;
};

// Milliseconds.
struct TimeoutsConfig {
    std::int64_t heartbeat_ms = 250;    // between a gateway's signs of life
    std::int64_t disconnect_ms = 200;   // from a broken connection to "lost"
    std::int64_t reconnect_ms = 10000;  // after a coordinator's start nobody is lost for so long
    std::int64_t progress_ms = 60000;   // alive without progress for so long = lost
    std::int64_t exchange_ms = 120000;  // one attempt of a round's exchange
    std::int64_t island_ms = 300000;    // a collective between ranks of an island
    std::int64_t quorum_ms = 600000;    // waiting for exchange.min_sites
    std::int64_t startup_ms = 120000;   // from a process's start to its first sign of life

    bool operator==(const TimeoutsConfig&) const = default;
};

// loopback: nothing listens beyond this machine. insecure: anybody who reaches the port is believed.
enum class SecurityMode : std::uint8_t { loopback, insecure };

struct SecurityConfig {
    SecurityMode mode = SecurityMode::loopback;

    bool operator==(const SecurityConfig&) const = default;
};

struct RunConfig {
    RunTable run;
    ModelConfig model;
    DataConfig data;
    TrainConfig train;
    OptimConfig optim;
    OuterConfig outer;
    ExchangeConfig exchange;
    IslandConfig island;            // defaults for every site
    std::vector<SiteConfig> sites;  // in the order of their names = SiteId order; at least one
    CoordinatorConfig coordinator;
    CheckpointConfig checkpoint;
    MonitorConfig monitor;
    TimeoutsConfig timeouts;
    SecurityConfig security;

    bool operator==(const RunConfig&) const = default;
};

}  // namespace atl
