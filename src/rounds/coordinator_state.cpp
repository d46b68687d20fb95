#include "rounds/coordinator_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "core/check.h"
#include "rounds/coordinator_data.h"
#include "rounds/overloaded.h"

namespace atl {

CoordinatorState::Data::Data(CoordinatorOptions run_options, CoordinatorRecord stored)
    : options(std::move(run_options)), record(std::move(stored)), membership(options) {
    ATOLL_CHECK(!options.site_names.empty(), "a run without sites");
    view.run_id = options.run_id;
    view.term = record.term;
}

RoundRecord* CoordinatorState::Data::open_record() {
    if (record.rounds.empty()) return nullptr;
    RoundRecord& newest = record.rounds.rbegin()->second;
    return newest.committed() ? nullptr : &newest;
}

const RoundRecord* CoordinatorState::Data::open_record() const {
    if (record.rounds.empty()) return nullptr;
    const RoundRecord& newest = record.rounds.rbegin()->second;
    return newest.committed() ? nullptr : &newest;
}

const RoundRecord* CoordinatorState::Data::last_committed() const {
    for (auto round = record.rounds.rbegin(); round != record.rounds.rend(); ++round) {
        if (round->second.committed()) return &round->second;
    }
    return nullptr;
}

Round CoordinatorState::Data::next_round() const {
    const RoundRecord* last = last_committed();
    return last == nullptr ? Round(0) : last->plan.round.next();
}

std::optional<Hash128> CoordinatorState::Data::base_hash(Round round) const {
    const auto found = record.rounds.find(round);
    if (found != record.rounds.end()) return found->second.plan.state_before;
    const auto before = record.rounds.find(Round(round.value() - 1));
    if (before != record.rounds.end() && before->second.committed())
        return state_after(before->second.plan.state_before, before->second.commits);
    return std::nullopt;
}

std::optional<Hash128> CoordinatorState::Data::state_hash(Round round, std::int64_t fragments_applied) const {
    if (fragments_applied == 0) return base_hash(round);
    const auto found = record.rounds.find(round);
    if (found == record.rounds.end()) return std::nullopt;
    const std::span commits(found->second.commits);
    if (std::int64_t(commits.size()) < fragments_applied) return std::nullopt;
    return state_after(found->second.plan.state_before, commits.first(std::size_t(fragments_applied)));
}

std::optional<Hash128> CoordinatorState::Data::base_hash() const {
    return base_hash(next_round());
}

void CoordinatorState::Data::decide(CoordinatorAction action, std::string reason) {
    decisions.push_back({std::move(action), std::move(reason)});
}

void CoordinatorState::Data::end(int exit_code, bool checkpoint, std::string reason) {
    if (ending) return;
    decide(coordinator_action::Note{}, fmt::format("the run ends: {}", reason));
    ending = Ending{exit_code, checkpoint, std::move(reason)};
}

// Costs are no decision: nobody waits for them, and a restart may lose the last ones.
void CoordinatorState::Data::take_cost(const Report& report) {
    if (!report.last_cost || membership.find(report.site.id) == nullptr) return;
    const RoundCost& cost = *report.last_cost;
    const auto found = record.rounds.find(cost.round);
    if (found == record.rounds.end() || !found->second.committed()) return;
    std::deque<RoundCost>& costs = record.costs[report.site.id];
    if (!costs.empty() && costs.back().round >= cost.round) return;
    costs.push_back(cost);
    if (costs.size() > kCostsKept) costs.pop_front();
    decide(coordinator_action::StoreCost{report.site.id, cost}, "");
}

// Of the newest round that was to be evaluated: nothing while the share of a site that lives, or may come back to this
// coordinator, is missing.
std::optional<Evaluation> CoordinatorState::Data::evaluated(TimePoint now) const {
    for (auto round = record.rounds.rbegin(); round != record.rounds.rend(); ++round) {
        const RoundPlan& plan = round->second.plan;
        if (!round->second.committed() || !plan.evaluate) continue;
        Evaluation total{.round = plan.round};
        bool anybody = false;
        for (const SitePlan& member : plan.sites) {
            const KnownSite* site = membership.find(member.site);
            const bool same = site != nullptr && site->info.incarnation == member.incarnation;
            const std::optional<Evaluation> share = same ? site->report.evaluation : std::nullopt;
            if (share && share->round == plan.round) {
                anybody = true;
                total.loss_sum += share->loss_sum;
                total.tokens += share->tokens;
            } else if (same ? site->live() : now < grace_until) {
                return {};
            }
        }
        return anybody ? std::optional(total) : std::nullopt;
    }
    return {};
}

void CoordinatorState::Data::change_numbers(const coordinator_event::NumbersChanged& change) {
    options.numbers = change.numbers;
    change_reason = change.reason;
    const std::string reason = "from the next round: " + change.reason;
    if (change.changes.empty()) return decide(coordinator_action::Note{}, reason);
    for (const auto& [key, value] : change.changes) record.changes[key] = value;
    decide(coordinator_action::StoreChanges{record.changes}, reason);
}

void CoordinatorState::Data::remove(SiteId site, const std::string& reason) {
    const RoundRecord* open = open_record();
    if (open == nullptr || open->plan.find(site) == nullptr || removed.contains(site)) return;
    removed[site] = {view.version + 1, reason};
}

void CoordinatorState::Data::start(TimePoint now) {
    record.term = record.term.next();
    decide(coordinator_action::StoreTerm{record.term},
           fmt::format("coordinator starts with term {}", record.term));
    if (options.numbers.automatic_inner_steps && !record.rounds.empty())
        options.numbers.inner_steps = record.rounds.rbegin()->second.plan.inner_steps();
    std::vector<std::string> changed;
    for (const auto& [key, value] : record.changes) changed.push_back(key + " = " + value);
    if (!changed.empty()) change_reason = fmt::format("{}, as told before", fmt::join(changed, ", "));
    // After the very first start there is nobody to come back.
    grace_until = record.rounds.empty() ? now : now + options.timeouts.reconnect;
    if (record.rounds.empty()) start_deadline = now + options.timeouts.join;
    const RoundRecord* open = open_record();
    if (open == nullptr) return;
    for (const SitePlan& site : open->plan.sites) {
        if (site.site.value() < std::int64_t(options.site_names.size())) {
            membership.expect(site.site, site.incarnation, now);
        } else {
            removed[site.site] = {view.version + 1, "the configuration no longer names it"};
        }
    }
}

void CoordinatorState::Data::advance(TimePoint now) {
    for (const Departure& departure : membership.expire(now, now < grace_until)) {
        decide(coordinator_action::Note{},
               fmt::format("site {} is lost: {}", called(departure.site), departure.reason));
        remove(departure.site, departure.reason);
    }
    if (!ending) advance_start(now);
    if (!ending) advance_attempts(now);
    if (!ending) advance_plan(now);
    refresh_view(now);
}

void CoordinatorState::Data::refresh_view(TimePoint now) {
    View next;
    next.run_id = options.run_id;
    next.term = record.term;
    next.round = next_round();
    next.state_before = base_hash();
    next.start = start_from;
    next.ending = ending;
    const auto newest = evaluated(now);
    next.evaluation = newest ? newest : view.evaluation;
    if (const RoundRecord* open = open_record()) {
        next.plan = open->plan;
        next.attempts = open->attempts;
        next.open_commits = open->commits;
    }
    if (const RoundRecord* last = last_committed()) next.commits = last->commits;
    for (const auto& [id, site] : membership.sites()) {
        SiteView entry;
        entry.info = site.info;
        entry.standing = site.standing;
        entry.phase = site.report.phase;
        entry.round = site.report.round;
        entry.fragments_started = site.report.fragments_applied;
        for (const FragmentReport& fragment : site.report.fragments) {
            if (!fragment.contribution) continue;
            entry.fragments_started = fragment.fragment.value() + 1;
            entry.blocked = !fragment.missing_contributions.empty();
        }
        entry.reason = site.reason;
        next.sites.push_back(entry);
    }
    next.version = view.version;
    if (next == view) return;
    next.version = view.version + 1;
    view = std::move(next);
}

CoordinatorState::CoordinatorState(CoordinatorOptions options, CoordinatorRecord stored)
    : data_(std::make_unique<Data>(std::move(options), std::move(stored))) {}
CoordinatorState::CoordinatorState(const CoordinatorState& other)
    : data_(std::make_unique<Data>(*other.data_)) {}
CoordinatorState& CoordinatorState::operator=(const CoordinatorState& other) {
    *data_ = *other.data_;
    return *this;
}
CoordinatorState::CoordinatorState(CoordinatorState&&) noexcept = default;
CoordinatorState& CoordinatorState::operator=(CoordinatorState&&) noexcept = default;
CoordinatorState::~CoordinatorState() = default;

std::vector<CoordinatorDecision> CoordinatorState::handle(const CoordinatorEvent& event, TimePoint now) {
    Data& data = *data_;
    data.decisions.clear();
    const auto take_report = [&](const coordinator_event::ReportReceived& received) {
        for (const Departure& departure : data.membership.take(received.report, now)) {
            data.decide(coordinator_action::Note{},
                        fmt::format("site {} is out: {}", data.called(departure.site), departure.reason));
            data.remove(departure.site, departure.reason);
        }
        data.take_cost(received.report);
    };
    std::visit(Overloaded{
                   [&](const coordinator_event::Started&) { data.start(now); },
                   take_report,
                   [&](const coordinator_event::Disconnected& gone) {
                       data.membership.disconnected(gone.site, gone.incarnation, now);
                   },
                   [&](const coordinator_event::NumbersChanged& change) { data.change_numbers(change); },
                   [&](const coordinator_event::StopRequested& stop) { data.stop_reason = stop.reason; },
                   [](const coordinator_event::Tick&) {},
               },
               event);
    data.advance(now);
    return std::move(data.decisions);
}

const View& CoordinatorState::view() const {
    return data_->view;
}

View CoordinatorState::view_for(const SiteInfo& receiver, const std::string& run_id) const {
    View view = data_->view;
    view.refusal = data_->membership.refusal(receiver, run_id);
    const KnownSite* known = data_->membership.find(receiver.id);
    view.hello_known =
        known != nullptr && known->info.incarnation == receiver.incarnation && known->hello.has_value();
    return view;
}

const CoordinatorRecord& CoordinatorState::record() const {
    return data_->record;
}

const RunNumbers& CoordinatorState::numbers() const {
    return data_->options.numbers;
}

bool CoordinatorState::anyone_works(TimePoint now) const {
    return std::ranges::any_of(data_->membership.sites(), [&](const auto& entry) {
        const KnownSite& site = entry.second;
        return site.live() && site.report.phase != Phase::finished &&
               now - site.last_progress < data_->options.timeouts.progress;
    });
}

bool CoordinatorState::done() const {
    if (!data_->ending) return false;
    for (const auto& [id, site] : data_->membership.sites()) {
        if (site.live()) return false;
    }
    return true;
}

}  // namespace atl
