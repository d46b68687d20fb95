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
    for (auto& [fragment, exchange] : current) exchange.drop_own();
    if (plan) steps_done = plan->first_step;
    act(site_action::DropContribution{round}, reason);
}

void SiteState::Data::on_loaded(const site_event::StateLoaded& loaded, TimePoint now) {
    if (phase != Phase::loading) return;
    round = loaded.round;
    steps_done = loaded.step;
    state_hash = loaded.state_hash;
    plan = loaded.plan;
    working = loaded.plan.has_value();
    if (plan) checkpoint_written = CheckpointRef{loaded.step, loaded.round, loaded.state_hash};
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

void SiteState::Data::on_step(const site_event::StepDone& done) {
    if (phase != Phase::training || !plan) return;
    steps_done = done.step;
    ++progress;
    if (done.step == plan->last_step()) return;  // its checkpoint is written when the round is applied
    const auto& steps = plan->checkpoint_steps;
    if (std::find(steps.begin(), steps.end(), done.step) == steps.end()) return;
    write_checkpoint({done.step, round, state_hash}, fmt::format("the plan of round {} asks for it", round));
}

void SiteState::Data::on_declared(const site_event::ContributionDeclared& declared) {
    if (phase != Phase::training && phase != Phase::exchanging) return;
    if (!working) return;
    exchange(declared.fragment).declare(declared.facts);
    ++progress;
    enter(Phase::exchanging, "the contribution is ready");
}

void SiteState::Data::write_checkpoint(const CheckpointRef& checkpoint, const std::string& reason) {
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
    if (phase != Phase::applying || applied.round != round) return;
    state_hash = state_after(applying);
    steps_done = applying.front().last_step;
    const std::optional<RoundPlan> done = plan;
    round = round.next();
    kept = std::move(current);
    current = std::move(early);
    early.clear();
    plan.reset();
    working = false;
    waits.clear();
    fetched_again = false;
    enter(Phase::ready, fmt::format("round {} is applied", applied.round));
    act(site_action::ForgetPackets{applied.round}, "they are not asked for any more");
    if (done && done->evaluate) evaluate(*done);
    // The last checkpoint waits for the end of the run, which waits for the evaluation: it holds its result.
    const bool waits_for_end = done && done->evaluate && done->stop_step == steps_done;
    if (done && !waits_for_end) {
        const auto& steps = done->checkpoint_steps;
        if (std::find(steps.begin(), steps.end(), steps_done) != steps.end()) {
            write_checkpoint({steps_done, round, state_hash},
                             fmt::format("the plan of round {} asks for it", applied.round));
        }
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
    report.state_hash = state_hash;
    report.progress = progress;
    report.leaving = leaving;
    report.last_cost = last_cost;
    report.evaluation = evaluation;
    if (!view.hello_known) report.hello = options.hello;
    if (!plan || !has_state()) return report;
    for (const auto& [fragment, exchange] : current) {
        if (!exchange.attempt()) continue;
        FragmentReport part;
        part.fragment = fragment;
        part.attempt = exchange.attempt()->attempt;
        part.contribution = exchange.facts();
        part.missing_contributions = exchange.missing_contributions();
        part.missing_means = exchange.missing_means();
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
                   [&](const site_event::StepDone& done) { data.on_step(done); },
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

const View& SiteState::view() const {
    return data_->view;
}

}  // namespace atl
