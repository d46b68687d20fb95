#include "rounds/site_state.h"

#include <algorithm>

#include "core/check.h"
#include "rounds/overloaded.h"
#include "rounds/site_data.h"

namespace atl {

void SiteState::Data::enter(Phase next, const std::string& reason) {
    if (phase == next) return;
    phase = next;
    ++progress;
    act(site_action::ReportNow{}, reason);
}

void SiteState::Data::drop_work(const std::string& reason) {
    if (!working) return;
    working = false;
    const FragmentId first(static_cast<std::int32_t>(fragments_applied));
    for (auto entry = current.lower_bound(first); entry != current.end(); ++entry) entry->second.drop_own();
    if (plan) steps_done = plan->first_step;
    act(site_action::DropContribution{round, first}, reason);
}

bool SiteState::Data::apply_is_due() const {
    if (!working || !plan || phase == Phase::ready) return true;
    const auto next = static_cast<std::size_t>(fragments_applied);
    ATOLL_CHECK_LT(next, plan->fragments.size(), "fragments applied in round {}", round);
    // A site with fewer steps than others has done all of its own.
    const Step own_end(plan->first_step.value() + plan->find(self())->inner_steps);
    return steps_done >= std::min(plan->apply_step(plan->fragments[next]), own_end);
}

// Inside a round. A site with nothing to train waits for every mean in turn; one that works, only where it can't go on.
Phase SiteState::Data::phase_in_round() const {
    const FragmentId next(static_cast<std::int32_t>(fragments_applied));
    const auto found = current.find(next);
    if (working) {
        const bool declared = found != current.end() && found->second.facts();
        return declared && apply_is_due() ? Phase::exchanging : Phase::training;
    }
    const bool member = found != current.end() && found->second.attempt() &&
                        found->second.attempt()->is_member(self());
    return member ? Phase::exchanging : Phase::ready;
}

void SiteState::Data::on_loaded(const site_event::StateLoaded& loaded, TimePoint now) {
    if (phase != Phase::loading) return;
    round = loaded.round;
    steps_done = loaded.step;
    state_hash = loaded.state_hash;
    plan = loaded.plan;
    working = loaded.plan.has_value();
    fragments_applied = loaded.fragments_applied;
    told_held.reset();
    if (plan) {
        checkpoint_written =
            CheckpointRef{loaded.step, loaded.round, loaded.state_hash, loaded.fragments_applied};
    }
    current.clear();
    early.clear();
    kept.clear();
    enter(Phase::ready, fmt::format("holds the state of round {}", round));
    follow_view(now);
}

void SiteState::Data::on_failed(const site_event::StateFailed& failed, TimePoint now) {
    if (phase != Phase::loading) return;
    if (loading_checkpoint) {
        stopped = true;
        act(site_action::Stop{1}, "the state can't be loaded: " + failed.reason);
        return;
    }
    retry_at = now + options.resend;
    enter(Phase::starting, "the state could not be fetched: " + failed.reason);
}

void SiteState::Data::on_step(const site_event::StepDone& done, TimePoint now) {
    if (phase != Phase::training || !plan) return;
    steps_done = done.step;
    ++progress;
    // Where a mean is applied, a checkpoint is written after it.
    if (!apply_is_due()) return write_planned_checkpoint();
    enter(phase_in_round(), "this is where the mean is applied");
    check_holding();
    follow_view(now);
}

void SiteState::Data::on_declared(const site_event::ContributionDeclared& declared) {
    if (phase != Phase::training && phase != Phase::exchanging) return;
    if (!working || declared.fragment.value() != fragments_applied) return;
    exchange(declared.fragment).declare(declared.facts);
    steps_done = std::max(steps_done, std::min(plan->fragment(declared.fragment).start_step,
                                               Step(plan->first_step.value() +
                                                    plan->find(self())->inner_steps)));
    ++progress;
    if (phase_in_round() == phase) act(site_action::ReportNow{}, "a contribution is ready");
    enter(phase_in_round(), "the contribution is ready");
}

void SiteState::Data::write_planned_checkpoint() {
    if (!plan || !working) return;
    const auto& steps = plan->checkpoint_steps;
    if (std::find(steps.begin(), steps.end(), steps_done) == steps.end()) return;
    write_checkpoint(fmt::format("the plan of round {} asks for it", round));
}

void SiteState::Data::write_checkpoint(const std::string& reason) {
    const CheckpointRef checkpoint{steps_done, round, state_hash, fragments_applied};
    if (checkpoint_written == checkpoint || checkpoint_pending == checkpoint) return;
    checkpoint_pending = checkpoint;
    act(site_action::WriteCheckpoint{checkpoint}, reason);
}

void SiteState::Data::on_checkpoint(const site_event::CheckpointWritten& written, TimePoint now) {
    // A step that was under way when the run ended is done and in the checkpoint.
    if (!checkpoint_pending || written.step < checkpoint_pending->step) return;
    checkpoint_pending->step = written.step;
    checkpoint_written = checkpoint_pending;
    checkpoint_pending.reset();
    ++progress;
    if (plan && plan->stop_step == written.step && phase == Phase::training) {
        enter(Phase::finished, fmt::format("the plan stops at step {}", written.step));
    }
    follow_view(now);
}

void SiteState::Data::on_applied(const site_event::CommitApplied& applied, TimePoint now) {
    if (phase != Phase::applying || applied.round != round ||
        applied.fragment.value() != fragments_applied) {
        return;
    }
    state_hash = applying->state_hash;
    ++fragments_applied;
    waits.clear();
    fetched_again = false;
    if (applying->commit.ends_round()) return end_round(now);
    // Who lacks the round before's fragment by now is a whole round behind.
    kept.erase(applied.fragment);
    act(site_action::ForgetPackets{round, applied.fragment}, "they are not asked for any more");
    enter(phase_in_round(), fmt::format("fragment {} of round {} is applied", applied.fragment, round));
    write_planned_checkpoint();
    follow_view(now);
}

void SiteState::Data::end_round(TimePoint now) {
    steps_done = applying->commit.last_step;
    const std::optional<RoundPlan> done = plan;
    const Round applied = round;
    round = round.next();
    fragments_applied = 0;
    told_held.reset();
    kept = std::move(current);
    current = std::move(early);
    early.clear();
    plan.reset();
    working = false;
    enter(Phase::ready, fmt::format("round {} is applied", applied));
    act(site_action::ForgetPackets{applied}, "they are not asked for any more");
    if (done && done->evaluate) evaluate(*done);
    // The last checkpoint waits for the end of the run, which waits for the evaluation: it holds its result.
    const bool waits_for_end = done && done->evaluate && done->stop_step == steps_done;
    if (done && !waits_for_end) {
        const auto& steps = done->checkpoint_steps;
        if (std::find(steps.begin(), steps.end(), steps_done) != steps.end())
            write_checkpoint(fmt::format("the plan of round {} asks for it", applied));
    }
    follow_view(now);
}

void SiteState::Data::evaluate(const RoundPlan& done) {
    const auto me = std::ranges::find(done.sites, self(), &SitePlan::site);
    if (me == done.sites.end()) return;
    evaluating = true;
    act(site_action::Evaluate{done.round, me - done.sites.begin(), std::ssize(done.sites)},
        "the plan asks for it");
}

void SiteState::Data::on_evaluated(const site_event::Evaluated& evaluated, TimePoint now) {
    evaluating = false;
    evaluation = evaluated.share;
    evaluation_taken = false;
    ++progress;
    act(site_action::ReportNow{}, "its share of the held-out windows is evaluated");
    take_evaluation();  // whoever comes late is not waited for
    follow_view(now);
}

void SiteState::Data::take_evaluation() {
    if (evaluation_taken || !view.evaluation || view.evaluation->round < evaluation->round) return;
    evaluation_taken = true;
    if (view.evaluation->round == evaluation->round)
        act(site_action::TakeEvaluation{*view.evaluation}, "every site's share is there");
}

void SiteState::Data::on_tick(TimePoint now) {
    follow_view(now);
    if (!stopped && has_state() && phase != Phase::finished) ask_again(now);
}

Report SiteState::Data::make_report() {
    Report report;
    report.run_id = options.run_id;
    report.site = options.self;
    report.term = view.term;
    report.version = view.version;
    report.sequence = ++sequence;
    report.phase = phase;
    report.round = round;
    report.steps_done = steps_done;
    report.fragments_applied = fragments_applied;
    report.state_hash = state_hash;
    report.progress = progress;
    report.leaving = leaving;
    report.last_cost = last_cost;
    report.evaluation = evaluation;
    if (!view.hello_known) report.hello = options.hello;
    if (!has_state()) return report;
    const auto keep = [&](Round of, const std::map<FragmentId, FragmentExchange>& exchanges) {
        for (const auto& [fragment, exchange] : exchanges)
            if (exchange.holds_all()) report.kept.push_back({of, fragment});
    };
    if (round > Round(0)) keep(Round(round.value() - 1), kept);
    keep(round, current);
    if (!plan) return report;
    for (const auto& [fragment, exchange] : current) {
        if (!exchange.attempt() || fragment.value() < fragments_applied) continue;
        if (fragment.value() > fragments_applied && !exchange.has_begun()) continue;
        FragmentReport part;
        part.fragment = fragment;
        part.attempt = exchange.attempt()->attempt;
        part.contribution = exchange.facts();
        part.missing_contributions = exchange.missing_contributions();
        part.missing_means = exchange.missing_means();
        part.least_norms = exchange.least_norms();
        part.complaints.assign(exchange.complaints.begin(), exchange.complaints.end());
        if (exchange.holds_all() && part.complaints.empty()) part.held = exchange.hash(plan->state_before);
        report.fragments.push_back(part);
    }
    return report;
}

SiteState::SiteState(SiteOptions options) : data_(std::make_unique<Data>(std::move(options))) {}
SiteState::SiteState(const SiteState& other) : data_(std::make_unique<Data>(*other.data_)) {}
SiteState& SiteState::operator=(const SiteState& other) {
    *data_ = *other.data_;
    return *this;
}
SiteState::SiteState(SiteState&&) noexcept = default;
SiteState& SiteState::operator=(SiteState&&) noexcept = default;
SiteState::~SiteState() = default;

std::vector<SiteDecision> SiteState::handle(const SiteEvent& event, TimePoint now) {
    Data& data = *data_;
    data.decisions.clear();
    if (data.stopped) return {};
    std::visit(Overloaded{
                   [&](const site_event::ViewReceived& received) { data.on_view(received.view, now); },
                   [&](const site_event::StateLoaded& loaded) { data.on_loaded(loaded, now); },
                   [&](const site_event::StateFailed& failed) { data.on_failed(failed, now); },
                   [&](const site_event::StepDone& done) { data.on_step(done, now); },
                   [&](const site_event::ContributionDeclared& declared) { data.on_declared(declared); },
                   [&](const site_event::ContributionEncoded& chunk) { data.on_encoded(chunk); },
                   [&](const site_event::PacketArrived& packet) { data.on_packet(packet, now); },
                   [&](const site_event::PacketUnusable& packet) { data.on_unusable(packet); },
                   [&](const site_event::MeanReduced& mean) { data.on_reduced(mean); },
                   [&](const site_event::PacketsRequested& request) { data.on_request(request); },
                   [&](const site_event::CommitApplied& applied) { data.on_applied(applied, now); },
                   [&](const site_event::RoundMeasured& measured) {
                       data.last_cost = measured.cost;
                       data.act(site_action::ReportNow{}, "what the round has cost");
                   },
                   [&](const site_event::WindowsEvaluated&) { ++data.progress; },
                   [&](const site_event::Evaluated& evaluated) { data.on_evaluated(evaluated, now); },
                   [&](const site_event::CheckpointWritten& written) { data.on_checkpoint(written, now); },
                   [&](const site_event::LeaveRequested&) {
                       data.leaving = true;
                       data.act(site_action::ReportNow{}, "this site was asked to leave");
                   },
                   [&](const site_event::Tick&) { data.on_tick(now); },
               },
               event);
    return std::move(data.decisions);
}

Report SiteState::report() {
    return data_->make_report();
}

Phase SiteState::phase() const {
    return data_->phase;
}

Round SiteState::round() const {
    return data_->round;
}

std::int64_t SiteState::fragments_applied() const {
    return data_->fragments_applied;
}

const View& SiteState::view() const {
    return data_->view;
}

}  // namespace atl
