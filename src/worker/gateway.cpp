#include "worker/gateway.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codec/error_feedback.h"
#include "config/wire_codec.h"
#include "coordinator/run_options.h"
#include "core/error.h"
#include "core/hash.h"
#include "island/schedule.h"
#include "kernels/outer_step.h"
#include "rounds/overloaded.h"

namespace atl {
namespace {

constexpr Milliseconds kOrderPatience{200};

bool feeds_errors_back(const RunConfig& config) {
    return config.exchange.error_feedback > 0 &&
           needs_error_feedback(codec_from_name(wire_codec(config.exchange).name));
}

// All parameters are one fragment, tensors in the order of their names.
OuterFragment make_outer(const RunConfig& config, const Island& island) {
    std::vector<std::pair<std::string, std::int64_t>> tensors;
    for (const auto& tensor : island.tensors())
        tensors.emplace_back(tensor.name, element_count(tensor.shape));
    std::ranges::sort(tensors);
    const OuterRule rule =
        outer_rule(config.outer.method == OuterMethod::average, config.outer.momentum, config.outer.nesterov);
    return OuterFragment(consecutive_slices(tensors), has_momentum(rule), feeds_errors_back(config));
}

OuterSettings outer_settings(const MethodNumbers& numbers) {
    return {.rule = outer_rule(numbers.method == "average", numbers.outer_momentum, numbers.nesterov),
            .lr = static_cast<float>(numbers.outer_lr),
            .momentum = static_cast<float>(numbers.outer_momentum),
            .alpha = static_cast<float>(numbers.alpha)};
}

}  // namespace

Gateway::Gateway(GatewayParts parts)
    : parts_(std::move(parts)),
      numbers_(coordinator_options(parts_.config, std::nullopt).numbers.method),
      outer_(make_outer(parts_.config, parts_.trainer.island())),
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
        const bool working = training_ && !training_->held;
        if (const auto order = parts_.exchange.next_order(working ? parts_.clock.now()
                                                                  : parts_.clock.after(kOrderPatience))) {
            execute(*order);
        } else if (working) {
            train_one_step();
        }
    }
    return *exit_code_;
}

// A coordinator is restarted where it ran, so silence is waited out; but not for ever.
void Gateway::check_coordinator() const {
    const Milliseconds silence = parts_.coordinator_silence();
    const auto& timeouts = parts_.config.timeouts;
    if (silence <= Milliseconds(in_touch_ ? timeouts.quorum_ms : timeouts.startup_ms)) return;
    throw CommError(fmt::format(
        "[worker] nothing from the coordinator ({}) for {} ms; is it running? What was "
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
                   [&](const site_action::ApplyCommit& commit) { apply(commit); },
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
    std::optional<RoundPlan> plan;
    if (from.kind == StartFrom::Kind::checkpoint) {
        parts_.team.announce(RankOrder::move(RankOrder::Kind::take_state));
        ReadCheckpoint read =
            read_site_checkpoint(parts_.files, parts_.checkpoints, from.step, island, outer_);
        plan = std::move(read.open_plan);
        parts_.reporter.go_on_from(read.progress);
        parts_.log.info("[worker] going on from the checkpoint of step {}", from.step);
    } else {
        initialise();
        if (parts_.config.model.init != "random") {
            parts_.team.announce(RankOrder::move(RankOrder::Kind::take_parameters));
            read_initial_parameters(parts_.files, parts_.config.model.init, island);
        }
        collect_parameters(outer_.anchor());
        std::ranges::fill(outer_.momentum(), 0.0f);
        std::ranges::fill(outer_.residual(), 0.0f);
    }
    steps_done_ = from.step;
    state_loaded(from.round, from.step, from.state_hash, std::move(plan));
}

void Gateway::fetch(const site_action::FetchState& order) {
    close_round();
    parts_.exchange.withdraw_state();
    const FetchedState fetched =
        parts_.exchange.fetch_state(order.donors, {outer_.anchor(), outer_.momentum()},
                                    parts_.clock.after(Milliseconds(parts_.config.timeouts.exchange_ms)));
    if (!fetched.version) {
        parts_.log.warning("[worker] no state from other sites: {}", fetched.problem);
        parts_.exchange.tell(site_event::StateFailed{fetched.problem});
        return;
    }
    parts_.log.info("[worker] took over the state of round {} from other sites", fetched.version->round);
    initialise();  // moments begin at zero
    spread_parameters(outer_.anchor());
    std::ranges::fill(outer_.residual(), 0.0f);  // it was this site's own; the donors have others
    steps_done_ = fetched.version->step;
    state_loaded(fetched.version->round, fetched.version->step, fetched.version->state_hash, {});
}

void Gateway::state_loaded(Round round, Step step, const Hash128& state_hash, std::optional<RoundPlan> plan) {
    rounds_applied_ = round;
    // Also inside a round: a joiner begins with what the round began with, and may be what the others wait for.
    publish({round, plan ? plan->first_step : step, state_hash});
    parts_.exchange.tell(site_event::StateLoaded{round, step, state_hash, std::move(plan)});
}

void Gateway::publish(const StateVersion& version) {
    parts_.exchange.publish_state(version, {outer_.anchor(), outer_.momentum()});
}

void Gateway::start_round(const site_action::StartRound& order, std::uint64_t work) {
    if (order.from_outer) return_to_anchor();
    open_plan_ = order.plan;
    numbers_ = order.plan.numbers;
    const SitePlan* mine = open_plan_->find(parts_.transport.self());
    training_.reset();
    if (mine == nullptr || !mine->contributes) return;  // a receiving member waits for the mean
    training_.emplace(Training{.work = work});
    stopwatch_.begin(order.plan.round, parts_.clock.now());
    const std::int64_t blocks_per_epoch = parts_.trainer.batches().order().blocks_per_epoch();
    for (const BlockRange& range : mine->blocks)
        for (std::int64_t i = 0; i < range.count; ++i)
            training_->blocks.push_back(range.epoch * blocks_per_epoch + range.first + i);
    steps_done_ = std::max(steps_done_, open_plan_->first_step);
}

void Gateway::train_one_step() {
    const RoundPlan& plan = *open_plan_;
    const std::int64_t step = steps_done_.value();
    const auto index = static_cast<std::size_t>(step - plan.first_step.value());
    if (index >= training_->blocks.size()) return contribute();
    const std::int64_t block = training_->blocks[index];
    parts_.team.announce(RankOrder::train(step, block));
    const StepResult result = parts_.trainer.train(step, block);
    steps_done_ = steps_done_.next();
    stopwatch_.step(result.seconds);
    parts_.reporter.step_done(steps_done_.value(),
                              learning_rate(parts_.config.optim, step, parts_.config.train.steps), result);
    // A checkpoint or stop inside the round holds exactly this state, so nothing may move before it is ordered.
    const bool inside = steps_done_ < plan.last_step();
    training_->held = inside && (std::ranges::count(plan.checkpoint_steps, steps_done_) > 0 ||
                                 plan.stop_step == steps_done_);
    parts_.exchange.tell(site_event::StepDone{steps_done_});
}

void Gateway::contribute() {
    collect_parameters(local_);
    auto delta = parts_.exchange.buffer(parts_.trainer.island().parameter_count());
    contribution(outer_.anchor(), local_, *delta);
    if (!outer_.residual().empty()) {
        add_residual(outer_.residual(), static_cast<float>(parts_.config.exchange.error_feedback), *delta);
        loss_ = delta;
    }
    ContributionFacts facts{.finite = true};
    for (const OuterSlice& slice : outer_.slices()) {
        const auto values = std::span<const float>(*delta).subspan(static_cast<std::size_t>(slice.begin),
                                                                   static_cast<std::size_t>(slice.elements));
        facts.tensor_norms.push_back(kernels::norm(values));
        facts.finite = facts.finite && kernels::all_finite(values);
    }
    parts_.exchange.contribute({.round = open_plan_->round,
                                .fragment = FragmentId(0),
                                .work = training_->work,
                                .delta = std::move(delta),
                                .facts = std::move(facts),
                                .loss = loss_});
    training_.reset();
}

void Gateway::apply(const site_action::ApplyCommit& order) {
    close_round();
    parts_.exchange.withdraw_state();
    const Commit& commit = order.commits.front();
    OuterSettings settings = outer_settings(numbers_);
    // A site whose own work does not count starts the next round from what all agree on.
    if (!order.contributed) settings.alpha = 0.0f;
    if (order.contributed && loss_) std::ranges::copy(*loss_, outer_.residual().begin());
    loss_.reset();
    collect_parameters(local_);
    apply_outer(settings, parts_.exchange.mean(commit.fragment), outer_.anchor(), outer_.momentum(), local_);
    spread_parameters(local_);

    const RoundTraffic traffic = parts_.exchange.last_traffic();
    exchange_seconds_ += traffic.seconds;
    steps_done_ = commit.last_step;
    rounds_applied_ = commit.round.next();
    double blocks = 0;
    for (const Contributor& contributor : commit.contributors) blocks += contributor.weight;
    parts_.reporter.round_committed(
        commit.round.value(), steps_done_.value(), commit.contributors.size(),
        static_cast<std::int64_t>(blocks) * parts_.trainer.batches().shape().block_tokens(),
        exchange_totals());
    parts_.reporter.exchanged(traffic);
    publish({rounds_applied_, steps_done_, state_after(order.commits)});
    const auto cost = stopwatch_.end(traffic, parts_.clock.now());
    parts_.exchange.tell(site_event::CommitApplied{commit.round});
    if (cost && order.contributed) parts_.exchange.tell(site_event::RoundMeasured{*cost});
}

void Gateway::drop_contribution() {
    close_round();
    loss_.reset();
    return_to_anchor();
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

void Gateway::return_to_anchor() {
    spread_parameters(outer_.anchor());
}

void Gateway::initialise() {
    parts_.team.announce(RankOrder::move(RankOrder::Kind::initialise));
    parts_.trainer.island().initialise(static_cast<std::uint64_t>(parts_.config.run.seed));
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
    const CheckpointRef now{steps_done_, ref.round, ref.state_hash};
    const bool inside = open_plan_ && steps_done_ > open_plan_->first_step;
    parts_.team.announce(RankOrder::move(RankOrder::Kind::give_state));
    write_site_checkpoint(parts_.files, parts_.checkpoints, parts_.config, now,
                          inside ? &*open_plan_ : nullptr, parts_.trainer.island(), outer_,
                          parts_.reporter.progress());
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
        parts_.team.announce(RankOrder::evaluate(begin, end));
        result = parts_.trainer.evaluate(begin, end);
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
    parts_.reporter.finished(parts_.trainer.island().parameter_count(), steps_done_.value(),
                             rounds_applied_.value(), blake2b_hex(std::as_bytes(outer_.anchor())),
                             exchange_totals());
    return exit_code;
}

}  // namespace atl
