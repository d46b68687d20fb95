#include "worker/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codec/error_feedback.h"
#include "config/wire_codec.h"
#include "coordinator/run_options.h"
#include "core/error.h"
#include "core/hash.h"
#include "rounds/overloaded.h"

namespace atl {
namespace {

constexpr Milliseconds kOrderPatience{200};

bool feeds_errors_back(const RunConfig& config) {
    return config.exchange.error_feedback > 0 &&
           needs_error_feedback(codec_from_name(wire_codec(config.exchange).name));
}

}  // namespace

OuterModelOptions outer_model_options(const RunConfig& config, const Island& island) {
    OuterModelOptions options;
    for (const auto& tensor : island.tensors())
        options.tensors_and_elements.emplace_back(tensor.name, element_count(tensor.shape));
    const MethodNumbers numbers = coordinator_options(config, std::nullopt).numbers.method;
    options.fragments = static_cast<int>(config.outer.fragments);
    options.method = &outer_method(numbers.method);
    options.buffers = options.method->buffers(options.method->rule(numbers.outer_momentum, numbers.nesterov));
    options.buffers.residual = feeds_errors_back(config);
    return options;
}

Gateway::Gateway(GatewayParts parts)
    : parts_(std::move(parts)),
      outer_(parts_.outer),
      local_(static_cast<std::size_t>(parts_.trainer.island().parameter_count())) {}

int Gateway::run() {
    parts_.log.info("[worker] waiting for the coordinator and the other sites");
    while (!exit_code_) {
        parts_.team.keep_alive();
        check_coordinator();
        if (parts_.leave && !std::exchange(left_, true)) {
            parts_.log.info("[worker] told to end: leaving at the end of the round");
            parts_.exchange.tell(site_event::LeaveRequested{});
        }
        const bool working = can_work();
        if (const auto order = parts_.exchange.next_order(working ? parts_.clock.now()
                                                                  : parts_.clock.after(kOrderPatience))) {
            execute(*order);
        } else if (working) {
            work();
        }
    }
    return *exit_code_;
}

// A coordinator is restarted where it ran, so silence is waited out; but not for ever.
void Gateway::check_coordinator() const {
    const Milliseconds silence = parts_.coordinator_silence();
    const auto& timeouts = parts_.config.timeouts;
    if (silence <= Milliseconds(in_touch_ ? timeouts.quorum_ms : timeouts.startup_ms)) return;
    // No accident of this process: another one would wait as long again.
    throw WorldError(fmt::format(
        "[worker] nothing from the coordinator ({}) for {} ms; is it running, or has the run ended? What was "
        "checkpointed is whole; timeouts.{} is the patience for this",
        parts_.config.coordinator.address, silence.count(), in_touch_ ? "quorum_ms" : "startup_ms"));
}

void Gateway::execute(const WorkerOrder& order) {
    parts_.log.debug("[worker] {}", order.reason);
    in_touch_ = true;
    std::visit(Overloaded{
                   [&](const site_action::LoadState& load_state) { load(load_state); },
                   [&](const site_action::FetchState& fetch_state) { fetch(fetch_state); },
                   [&](const site_action::StartRound& start) { start_round(start, order.work); },
                   [&](const site_action::ApplyCommit& commit) { apply(order, commit); },
                   [&](const site_action::DropContribution&) {
                       parts_.log.warning("[worker] this round's work is dropped: {}", order.reason);
                       drop_contribution();
                   },
                   [&](const site_action::WriteCheckpoint& write) { write_checkpoint(write.checkpoint); },
                   [&](const site_action::Evaluate& part) { evaluate(part); },
                   [&](const site_action::TakeEvaluation& all) { take_evaluation(all.total); },
                   [&](const site_action::Stop& end) {
                       parts_.log.write(end.exit_code == 0 ? LogLevel::info : LogLevel::error,
                                        fmt::format("[worker] stopping: {}", order.reason));
                       exit_code_ = stop(end.exit_code);
                   },
                   [](const auto&) {},
               },
               order.action);
}

void Gateway::load(const site_action::LoadState& order) {
    close_round();
    parts_.exchange.withdraw_state();
    Island& island = parts_.trainer.island();
    const StartFrom& from = order.from;
    site_event::StateLoaded loaded{from.round, from.step, from.state_hash, {}, from.fragments_applied};
    if (from.kind == StartFrom::Kind::checkpoint) {
        parts_.team.announce(RankOrder::move(RankOrder::Kind::take_state));
        ReadCheckpoint read =
            read_site_checkpoint(parts_.files, parts_.checkpoints, from.step, island, outer_);
        loaded.plan = std::move(read.open_plan);
        local_is_outer_ = false;
        parts_.reporter.go_on_from(read.progress);
        parts_.log.info("[worker] going on from the checkpoint of step {}", from.step);
    } else {
        initialise();
        if (parts_.config.model.init != "random") {
            parts_.team.announce(RankOrder::move(RankOrder::Kind::take_parameters));
            for (const auto& problem : read_initial_parameters(parts_.files, parts_.config.model.init, island))
                parts_.log.warning("{}; another is used", problem);
        }
        collect_parameters(local_);
        outer_.begin(local_);
        local_is_outer_ = true;
    }
    state_loaded(loaded);
}

void Gateway::fetch(const site_action::FetchState& order) {
    close_round();
    parts_.exchange.withdraw_state();
    initialise();
    // First: the outer state goes on changing.
    if (parts_.config.exchange.joiner_moments == "donor") fetch_moments(order.donors);
    const FetchedState fetched = parts_.exchange.fetch_state(
        StateKind::outer, order.donors, outer_.shared_parts(),
        parts_.clock.after(Milliseconds(parts_.config.timeouts.exchange_ms)),
        [this] { parts_.team.keep_alive(); });
    if (!fetched.version) {
        parts_.log.warning("[worker] no state from other sites: {}", fetched.problem);
        parts_.exchange.tell(site_event::StateFailed{fetched.problem});
        return;
    }
    parts_.log.info("[worker] took over the state of round {} from other sites", fetched.version->round);
    outer_.forget_own();  // the donors have others
    return_to_start();
    state_loaded({fetched.version->round,
                  fetched.version->step,
                  fetched.version->state_hash,
                  {},
                  fetched.version->fragments_applied});
}

// From one donor, for moments of several sites are no moments of one; the next where that has none.
void Gateway::fetch_moments(const std::vector<SiteId>& donors) {
    std::vector<float> moments(static_cast<std::size_t>(parts_.trainer.moment_elements()));
    if (moments.empty()) return;
    std::string problem;
    for (const SiteId donor : donors) {
        const FetchedState fetched = parts_.exchange.fetch_state(
            StateKind::inner_moments, {donor}, {moments},
            parts_.clock.after(Milliseconds(parts_.config.timeouts.exchange_ms)),
            [this] { parts_.team.keep_alive(); });
        problem = fetched.problem;
        if (!fetched.version) continue;
        parts_.team.announce(RankOrder::move(RankOrder::Kind::take_moments));
        const Hash128 hash = parts_.trainer.set_moments(moments, fetched.version->step.value());
        if (hash != fetched.version->state_hash)
            throw CorruptDataError("[worker] the inner moments are not those that the donor has sent");
        parts_.log.info("[worker] took over the inner moments of site {} after {} steps of its optimizer: {}",
                        parts_.config.sites.at(static_cast<std::size_t>(donor.value())).name,
                        fetched.version->step, hash.hex());
        return;
    }
    parts_.log.warning("[worker] no site has a checkpoint with inner moments ({}): they begin at zero", problem);
}

void Gateway::state_loaded(const site_event::StateLoaded& loaded) {
    rounds_applied_ = loaded.round;
    fragments_applied_ = loaded.fragments_applied;
    steps_done_ = loaded.step;
    // Also inside a round: a joiner begins with what the sites agree on, and may be what the others wait for.
    publish(loaded.plan ? loaded.plan->first_step : loaded.step, loaded.state_hash);
    parts_.exchange.tell(loaded);
}

// `step`: where a site begins that has this state and no steps of its own in the round.
void Gateway::publish(Step step, const Hash128& state_hash) {
    std::vector<std::span<const float>> parts;
    for (const std::span<float> part : outer_.shared_parts()) parts.emplace_back(part);
    parts_.exchange.publish_state({rounds_applied_, step, state_hash, fragments_applied_}, std::move(parts));
}

void Gateway::drop_contribution() {
    close_round();
    loss_.reset();
    outer_.drop_work();
    return_to_start();
}

void Gateway::close_round() {
    training_.reset();
    open_plan_.reset();
}

ExchangeTotals Gateway::exchange_totals() {
    ExchangeTotals totals{.seconds = exchange_seconds_};
    for (const PeerCounters& peer : parts_.transport.counters()) {
        totals.payload_bytes_sent += peer.payload_bytes_sent;
        totals.wire_bytes_sent += peer.wire_bytes_sent;
        totals.wire_bytes_received += peer.wire_bytes_received;
    }
    return totals;
}

void Gateway::return_to_start() {
    outer_.copy_starts(local_);
    spread_parameters(local_);
    local_is_outer_ = outer_.method().equal_on_all_sites();
}

void Gateway::initialise() {
    parts_.team.announce(RankOrder::move(RankOrder::Kind::initialise));
    parts_.trainer.island().initialise(static_cast<std::uint64_t>(parts_.config.run.seed));
}

void Gateway::move_fragment(RankOrder::Kind kind, FragmentId fragment) {
    const RankOrder order =
        RankOrder::move(kind, fragment, static_cast<int>(outer_.fragments().size()));
    parts_.team.announce(order);
    Island& island = parts_.trainer.island();
    if (kind == RankOrder::Kind::give_parameters)
        island.copy_parameters(local_, Trainer::selected(order));
    else
        island.set_parameters(local_, Trainer::selected(order));
}

void Gateway::collect_parameters(std::span<float> destination) {
    parts_.team.announce(RankOrder::move(RankOrder::Kind::give_parameters));
    parts_.trainer.island().copy_parameters(destination);
}

void Gateway::spread_parameters(std::span<const float> source) {
    parts_.team.announce(RankOrder::move(RankOrder::Kind::take_parameters));
    parts_.trainer.island().set_parameters(source);
}

void Gateway::write_checkpoint(const CheckpointRef& ref) {
    // The run may end while a step was under way: what is written is the state as it is now.
    const CheckpointRef now{steps_done_, ref.round, ref.state_hash, ref.fragments_applied};
    const bool inside = open_plan_ && steps_done_ > open_plan_->first_step;
    parts_.team.announce(RankOrder::move(RankOrder::Kind::give_state));
    write_site_checkpoint(parts_.files, parts_.checkpoints, parts_.config, now,
                          inside ? &*open_plan_ : nullptr, parts_.trainer.island(), outer_,
                          parts_.reporter.progress(exchange_totals()));
    parts_.log.info("checkpoint of step {} written", now.step);
    if (training_) training_->held = open_plan_->stop_step == steps_done_;
    parts_.exchange.tell(site_event::CheckpointWritten{now.step});
}

void Gateway::evaluate(const site_action::Evaluate& order) {
    const std::int64_t windows = parts_.trainer.evaluation_windows();
    const std::int64_t begin = windows * order.share / order.shares;
    const std::int64_t end = windows * (order.share + 1) / order.shares;
    EvaluationResult result;
    if (begin < end) {
        // What all sites agree on is evaluated; some of it may not be what this site trains on.
        std::vector<float> own;
        if (!local_is_outer_) {
            own.resize(local_.size());
            collect_parameters(own);
            outer_.copy_anchors(local_);
            spread_parameters(local_);
        }
        parts_.team.announce(RankOrder::evaluate(begin, end));
        result = parts_.trainer.evaluate(begin, end, [&] { parts_.exchange.tell(site_event::WindowsEvaluated{}); });
        if (!own.empty()) spread_parameters(own);
    }
    evaluated_at_ = steps_done_;
    if (!std::isfinite(result.loss_sum)) {
        parts_.log.warning("round {} step {}: the validation loss is not finite", order.round, steps_done_);
        result = {};
    }
    parts_.exchange.tell(site_event::Evaluated{{order.round, result.loss_sum, result.tokens}});
}

void Gateway::take_evaluation(const Evaluation& total) {
    if (total.tokens == 0) return;
    parts_.reporter.evaluated(total.round.value(), evaluated_at_.value(),
                              total.loss_sum / static_cast<double>(total.tokens));
}

int Gateway::stop(int exit_code) {
    parts_.team.announce(RankOrder::stop(exit_code));
    outer_.copy_anchors(local_);
    parts_.reporter.finished(parts_.trainer.island().parameter_count(), steps_done_.value(),
                             rounds_applied_.value(), blake2b_hex(std::as_bytes(std::span(local_))),
                             exchange_totals());
    return exit_code;
}

}  // namespace atl
