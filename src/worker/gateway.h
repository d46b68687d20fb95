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
#include "outer/outer_model.h"
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
    OuterModel& outer;
    RankTeam& team;
    SiteTransport& transport;
    SiteExchange& exchange;
    Reporter& reporter;
    const std::atomic<bool>& leave;                     // turns true when the site shall leave the run
    std::function<Milliseconds()> coordinator_silence;  // for how long nothing has come from there
};

// What the run's configuration makes of the outer state of this model.
OuterModelOptions outer_model_options(const RunConfig& config, const Island& island);

class Gateway {
  public:
    explicit Gateway(GatewayParts parts);

    // Until the run is over for this site. Returns the exit code.
    int run();

  private:
    // The inner steps of the open round, and the exchanges of its fragments beside them.
    struct Training {
        std::uint64_t work = 0;
        std::vector<std::int64_t> blocks;  // one per inner step
        bool held = false;                 // at a checkpoint or stop inside the round: the next order decides
        bool handed_over = false;          // the Δ of the fragment whose turn it is
    };

    void execute(const WorkerOrder& order);
    void check_coordinator() const;
    void load(const site_action::LoadState& order);
    void fetch(const site_action::FetchState& order);
    void fetch_moments(const std::vector<SiteId>& donors);
    void start_round(const site_action::StartRound& order, std::uint64_t work);
    bool can_work() const;  // there is something to do without another order
    void work();
    void train_one_step();
    void hold_if_planned();
    const FragmentPlan* next_fragment() const;  // whose turn it is in the open round; null: all are applied
    Step own_step(Step planned) const;          // sites with fewer steps than others come to the end of theirs
    void contribute(const FragmentPlan& fragment);
    void apply(const WorkerOrder& order, const site_action::ApplyCommit& apply);
    std::optional<RoundCost> end_round(const Commit& commit, const Hash128& state_hash);
    void drop_contribution();
    void write_checkpoint(const CheckpointRef& ref);
    void evaluate(const site_action::Evaluate& order);
    void take_evaluation(const Evaluation& total);
    int stop(int exit_code);

    // Local weights become those that the round begins with.
    void return_to_start();
    // What the gateway does together with the island's other ranks.
    void initialise();
    void move_fragment(RankOrder::Kind kind, FragmentId fragment);  // between the island and its place in local_
    void collect_parameters(std::span<float> destination);
    void spread_parameters(std::span<const float> source);
    void state_loaded(const site_event::StateLoaded& loaded);
    void publish(Step step, const Hash128& state_hash);
    void close_round();
    ExchangeTotals exchange_totals();

    GatewayParts parts_;
    OuterModel& outer_;
    std::vector<float> local_;
    std::shared_ptr<std::vector<float>> loss_;  // shared with the exchange, which fills it: the next residual
    std::optional<Training> training_;
    RoundStopwatch stopwatch_;
    std::optional<RoundPlan> open_plan_;  // from StartRound until the round is applied or dropped
    double exchange_seconds_ = 0;
    Step steps_done_;
    Step evaluated_at_;  // inner steps done when it last evaluated
    Round rounds_applied_;
    std::int64_t fragments_applied_ = 0;  // of the round after them
    bool local_is_outer_ = true;  // the island's parameters are the anchors
    std::optional<int> exit_code_;
    bool left_ = false;
    bool in_touch_ = false;  // the coordinator has been heard
};

}  // namespace atl
