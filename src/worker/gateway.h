// Gateway: rank 0 of an island. Carries out what the round protocol asks of a site (load, train, contribute, apply,
// checkpoint, evaluate, stop), with the other ranks in step, and keeps the outer state.
//
// The outer loop's arithmetic is in src/outer, its decisions in src/rounds; here they meet the island. Orders come
// from the exchange's thread; between inner steps the gateway looks for new ones, so a round can be dropped in its
// middle.
//
// Threads: one caller. Errors: CommError for a rank of the island, StorageError for the disk; sites that are lost are
// the protocol's business and no error here. Memory: outer state 8 bytes a parameter, one Δ, one local copy.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "exchange/round_stopwatch.h"
#include "exchange/site_exchange.h"
#include "outer/outer_state.h"
#include "worker/rank_team.h"
#include "worker/reporter.h"
#include "worker/site_checkpoint.h"
#include "worker/trainer.h"

namespace atl {

// What a gateway works with; all of it outlives the gateway.
struct GatewayParts {
    const RunConfig& config;
    SiteCheckpointNames checkpoints;
    FileSystem& files;
    const Clock& clock;
    Log log;
    Trainer& trainer;
    RankTeam& team;
    SiteTransport& transport;
    SiteExchange& exchange;
    Reporter& reporter;
    const std::atomic<bool>& leave;                     // turns true when the site shall leave the run
    std::function<Milliseconds()> coordinator_silence;  // for how long nothing has come from there
};

class Gateway {
  public:
    explicit Gateway(GatewayParts parts);

    // Until the run is over for this site. Returns the exit code.
    int run();

  private:
    // The inner steps of the open round.
    struct Training {
        std::uint64_t work = 0;
        std::vector<std::int64_t> blocks;  // one per inner step
        bool held = false;                 // at a checkpoint or stop inside the round: the next order decides
    };

    void execute(const WorkerOrder& order);
    void check_coordinator() const;
    void load(const site_action::LoadState& order);
    void fetch(const site_action::FetchState& order);
    void start_round(const site_action::StartRound& order, std::uint64_t work);
    void train_one_step();
    void contribute();
    void apply(const site_action::ApplyCommit& order);
    void drop_contribution();
    void write_checkpoint(const CheckpointRef& ref);
    void evaluate(const site_action::Evaluate& order);
    void take_evaluation(const Evaluation& total);
    int stop(int exit_code);

    // Local weights become the outer ones.
    void return_to_anchor();
    // What the gateway does together with the island's other ranks.
    void initialise();
    void collect_parameters(std::span<float> destination);
    void spread_parameters(std::span<const float> source);
    void state_loaded(Round round, Step step, const Hash128& state_hash, std::optional<RoundPlan> plan);
    void publish(const StateVersion& version);
    void close_round();
    ExchangeTotals exchange_totals();

    GatewayParts parts_;
    // The newest plan's, at first the config's: a joiner applies before it has a plan.
    MethodNumbers numbers_;
    OuterFragment outer_;
    std::vector<float> local_;
    std::shared_ptr<std::vector<float>> loss_;  // shared with the exchange, which fills it: the next residual
    std::optional<Training> training_;
    RoundStopwatch stopwatch_;
    std::optional<RoundPlan> open_plan_;  // from StartRound until the round is applied or dropped
    double exchange_seconds_ = 0;
    Step steps_done_;
    Step evaluated_at_;  // inner steps done when it last evaluated
    Round rounds_applied_;
    std::optional<int> exit_code_;
    bool left_ = false;
    bool in_touch_ = false;  // the coordinator has been heard
};

}  // namespace atl
