// The gateway inside a round: inner steps, and each fragment's exchange beside them.
#include <algorithm>

#include "island/schedule.h"
#include "kernels/outer_step.h"
#include "worker/gateway.h"

namespace atl {
namespace {

OuterSettings outer_settings(const OuterMethod& method, const MethodNumbers& numbers) {
    return {.rule = method.rule(numbers.outer_momentum, numbers.nesterov),
            .lr = static_cast<float>(numbers.outer_lr),
            .momentum = static_cast<float>(numbers.outer_momentum),
            .second_decay = static_cast<float>(numbers.second_decay),
            .epsilon = static_cast<float>(numbers.epsilon),
            .alpha = static_cast<float>(numbers.alpha)};
}

float share_of(SiteId site, const std::vector<Contributor>& contributors) {
    double own = 0;
    double all = 0;
    for (const Contributor& contributor : contributors) {
        all += contributor.weight;
        if (contributor.site == site) own = contributor.weight;
    }
    return static_cast<float>(own / all);
}

}  // namespace

bool Gateway::can_work() const {
    if (!training_ || training_->held) return false;
    const FragmentPlan* next = next_fragment();
    if (next == nullptr) return false;
    return !training_->handed_over || steps_done_ < own_step(open_plan_->apply_step(*next));
}

void Gateway::work() {
    const FragmentPlan& next = *next_fragment();
    if (!training_->handed_over && steps_done_ >= own_step(next.start_step)) return contribute(next);
    train_one_step();
}

void Gateway::start_round(const site_action::StartRound& order, std::uint64_t work) {
    if (order.from_outer) return_to_start();
    open_plan_ = order.plan;
    const SitePlan* mine = open_plan_->find(parts_.transport.self());
    training_.reset();
    if (mine == nullptr || !mine->contributes) return;  // a receiving member waits for the mean
    training_.emplace(Training{.work = work});
    stopwatch_.begin(order.plan.round, parts_.clock.now());
    const std::int64_t blocks_per_epoch = parts_.trainer.batches().order().blocks_per_epoch();
    for (const BlockRange& range : mine->blocks)
        for (std::int64_t i = 0; i < range.count; ++i)
            training_->blocks.push_back(range.epoch * blocks_per_epoch + range.first + i);
    steps_done_ = order.from_outer ? open_plan_->first_step : std::max(steps_done_, open_plan_->first_step);
}

const FragmentPlan* Gateway::next_fragment() const {
    const auto next = static_cast<std::size_t>(fragments_applied_);
    return next < open_plan_->fragments.size() ? &open_plan_->fragments[next] : nullptr;
}

Step Gateway::own_step(Step planned) const {
    const auto own_steps = static_cast<std::int64_t>(training_->blocks.size());
    return std::min(planned, Step(open_plan_->first_step.value() + own_steps));
}

void Gateway::train_one_step() {
    const RoundPlan& plan = *open_plan_;
    const std::int64_t step = steps_done_.value();
    const std::int64_t block = training_->blocks.at(static_cast<std::size_t>(step - plan.first_step.value()));
    local_is_outer_ = false;
    parts_.team.announce(RankOrder::train(step, block));
    const StepResult result = parts_.trainer.train(step, block);
    steps_done_ = steps_done_.next();
    stopwatch_.step(result.seconds);
    parts_.reporter.step_done(steps_done_.value(),
                              learning_rate(parts_.config.optim, step, parts_.config.train.steps), result);
    if (const auto why = parts_.trainer.drift(result); !why.empty()) {
        parts_.log.info("[plan] planning strands again: {}", why);
        parts_.team.announce(RankOrder::move(RankOrder::Kind::plan_again));
        parts_.trainer.plan_again();
    }
    const FragmentPlan* next = next_fragment();
    const bool applies_here = next != nullptr && steps_done_ == own_step(plan.apply_step(*next));
    if (!applies_here) hold_if_planned();
    parts_.exchange.tell(site_event::StepDone{steps_done_});
}

// A checkpoint or stop inside the round holds exactly this state, so nothing may move before it is ordered.
void Gateway::hold_if_planned() {
    const RoundPlan& plan = *open_plan_;
    training_->held =
        std::ranges::count(plan.checkpoint_steps, steps_done_) > 0 || plan.stop_step == steps_done_;
}

void Gateway::contribute(const FragmentPlan& plan) {
    OuterFragment& fragment = outer_.fragment(plan.id);
    auto delta = parts_.exchange.buffer(fragment.elements());
    move_fragment(RankOrder::Kind::give_parameters, plan.id);
    outer_.contribute(plan.id, local_,
                      {.overlapped = open_plan_->numbers.overlap_steps > 0,
                       .error_feedback = static_cast<float>(parts_.config.exchange.error_feedback)},
                      *delta);
    if (!fragment.residual().empty()) loss_ = delta;
    ContributionFacts facts{.finite = true};
    for (const OuterSlice& slice : fragment.slices()) {
        const auto values = std::span<const float>(*delta).subspan(static_cast<std::size_t>(slice.begin),
                                                                   static_cast<std::size_t>(slice.elements));
        facts.tensor_norms.push_back(kernels::norm(values));
        facts.finite = facts.finite && kernels::all_finite(values);
    }
    parts_.exchange.contribute({.round = open_plan_->round,
                                .fragment = plan.id,
                                .work = training_->work,
                                .delta = std::move(delta),
                                .facts = std::move(facts),
                                .loss = loss_});
    training_->handed_over = true;
}

void Gateway::apply(const WorkerOrder& order, const site_action::ApplyCommit& apply) {
    parts_.exchange.withdraw_state();
    const Commit& commit = apply.commit;
    const OuterSettings settings = outer_settings(outer_.method(), commit.numbers);
    const OuterResult result{
        .mean = order.mean,
        .round = commit.round,
        .share = apply.contributed ? share_of(parts_.transport.self(), commit.contributors) : 0,
        .overlapped = commit.numbers.overlap_steps > 0};
    if (apply.contributed && loss_) std::ranges::copy(*loss_, outer_.fragment(commit.fragment).residual().begin());
    loss_.reset();
    move_fragment(RankOrder::Kind::give_parameters, commit.fragment);
    outer_.apply(commit.fragment, settings, result, local_);
    move_fragment(RankOrder::Kind::take_parameters, commit.fragment);
    ++fragments_applied_;
    std::optional<RoundCost> cost;
    if (commit.ends_round()) {
        cost = end_round(commit, apply.state_hash);
    } else {
        publish(open_plan_ ? open_plan_->first_step : steps_done_, apply.state_hash);
    }
    if (training_) {
        training_->handed_over = false;
        hold_if_planned();
    }
    parts_.exchange.tell(site_event::CommitApplied{commit.round, commit.fragment});
    if (cost && apply.contributed) parts_.exchange.tell(site_event::RoundMeasured{*cost});
}

std::optional<RoundCost> Gateway::end_round(const Commit& commit, const Hash128& state_hash) {
    close_round();
    local_is_outer_ =
        commit.fragments == 1 && commit.numbers.alpha == 0 && outer_.method().equal_on_all_sites();
    const RoundTraffic traffic = parts_.exchange.last_traffic();
    exchange_seconds_ += traffic.seconds;
    steps_done_ = commit.last_step;
    rounds_applied_ = commit.round.next();
    fragments_applied_ = 0;
    double blocks = 0;
    double own_blocks = 0;
    for (const Contributor& contributor : commit.contributors) {
        blocks += contributor.weight;
        if (contributor.site == parts_.transport.self()) own_blocks += contributor.weight;
    }
    const std::int64_t block_tokens = parts_.trainer.batches().shape().block_tokens();
    parts_.reporter.round_committed(
        commit.round.value(), steps_done_.value(), commit.contributors.size(),
        static_cast<std::int64_t>(blocks) * block_tokens, static_cast<std::int64_t>(own_blocks) * block_tokens,
        exchange_totals());
    parts_.reporter.exchanged(traffic);
    publish(steps_done_, state_hash);
    return stopwatch_.end(traffic, parts_.clock.now());
}

}  // namespace atl
