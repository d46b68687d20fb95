// What a site does about the coordinator's view: begin, follow the plan, the attempts and the commit, end.
#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "core/check.h"
#include "rounds/site_data.h"

namespace atl {

void SiteState::Data::on_view(const View& received, TimePoint now) {
    if (received.run_id != options.run_id) return;
    if (!received.refusal.empty()) {
        view = received;
        stopped = true;
        act(site_action::Stop{2}, "the coordinator refuses this site: " + received.refusal);
        return;
    }
    const bool older =
        received.term < view.term || (received.term == view.term && received.version < view.version);
    if (older) return;
    const bool news = received.term != view.term || received.version != view.version;
    view = received;
    if (!news) return;
    take_evaluation();
    follow_view(now);
    // The coordinator judges a loss by what members say after they were told of it.
    if (!stopped && (phase == Phase::training || phase == Phase::exchanging || phase == Phase::holding)) {
        act(site_action::ReportNow{}, "a new view was seen");
    }
}

void SiteState::Data::follow_view(TimePoint now) {
    if (stopped || phase == Phase::loading || phase == Phase::applying) return;
    if (phase == Phase::starting) {
        if (obey_end() || view.name_is_taken(options.self)) return;
        if (!retry_at || now >= *retry_at) begin();
        return;
    }
    if (phase != Phase::finished && !state_fits()) {
        lose_state(fmt::format("the state of round {} is not one the run has committed", round));
        return;
    }
    if (phase != Phase::finished && follow_commit(now)) {
        if (view.ending && !ending_since) ending_since = now;
        const bool late = ending_since && now - *ending_since >= options.progress;
        if (late && phase != Phase::applying) {
            stopped = true;
            act(site_action::Stop{1}, "the run has ended, and the last commit could not be fetched");
        }
        return;
    }
    // The round is over, but the work here has still to come to where its last mean is applied.
    if (phase == Phase::training && view.round == round.next() && next_commit() != nullptr) return;
    if (obey_end() || phase == Phase::finished) return;
    adopt_plan();
    adopt_attempts();
    check_holding();
}

bool SiteState::Data::obey_end() {
    if (stopped) return true;
    const SiteView* me = view.find(self());
    const bool known = me != nullptr && me->info.incarnation == options.self.incarnation;
    const auto stop = [&](int exit_code, const std::string& reason) {
        stopped = true;
        phase = Phase::finished;
        act(site_action::ReportNow{}, reason);
        act(site_action::Stop{exit_code}, reason);
    };
    // The sum of all shares is the result of the run, and this site's share is part of it.
    const bool evaluates = evaluating || !evaluation_taken;
    if (view.ending) {
        if (evaluates) return true;
        // Before the first plan there is no round that a checkpoint could go on with.
        const bool planned = view.state_before.has_value();
        if (view.ending->checkpoint && planned && has_state() && phase != Phase::finished) {
            write_checkpoint("the run ends");
        }
        if (!checkpoint_pending) stop(view.ending->exit_code, view.ending->reason);
        return true;
    }
    if (phase == Phase::finished && known && me->phase == Phase::finished && !evaluates) {
        stop(0, "the coordinator knows that this site is done");
    } else if (leaving && known && me->standing == Standing::left) {
        stop(0, "this site has left");
    } else if (leaving && (view.term == Term(0) || view.name_is_taken(options.self))) {
        stop(0, "this site was never in the run");
    }
    return stopped;
}

void SiteState::Data::begin() {
    if (view.term == Term(0)) return;
    if (view.start) {
        const CheckpointRef chosen{view.start->step, view.start->round, view.start->state_hash,
                                   view.start->fragments_applied};
        const auto& offered = options.hello.checkpoints;
        const bool mine = std::find(offered.begin(), offered.end(), chosen) != offered.end();
        if (view.start->kind == StartFrom::Kind::initial || mine) {
            loading_checkpoint = true;
            enter(Phase::loading, view.start->reason);
            act(site_action::LoadState{*view.start}, view.start->reason);
            return;
        }
    }
    std::vector<SiteId> donors;
    for (const SiteView& site : view.sites) {
        const bool holds = site.phase != Phase::starting && site.phase != Phase::loading;
        if (site.info.id == self() || !holds || is_gone(site.standing)) continue;
        if (site.round == view.round || site.round.next() == view.round) donors.push_back(site.info.id);
    }
    if (donors.empty()) return;
    loading_checkpoint = false;
    enter(Phase::loading, "fetches the state of a running site");
    act(site_action::FetchState{donors}, "this site has no state of the run");
}

// Is the own state the one the open round begins with, or the one before the last commit? Where nobody was left with one
// of these, it is one from the checkpoint on that was chosen instead: nobody keeps the packets that lead there.
bool SiteState::Data::state_fits() const {
    if (view.start && std::pair(round, fragments_applied) < std::pair(view.start->round, view.start->fragments_applied))
        return false;
    if (!view.state_before) return true;
    const bool open = round == view.round;
    const std::vector<Commit>& commits = view.commits_of(round);
    if (!open && (round.next() != view.round || commits.empty())) return false;
    if (std::int64_t(commits.size()) < fragments_applied) return false;
    const Hash128 before = open ? *view.state_before : commits.front().state_before;
    return state_hash ==
           state_after(before, std::span(commits).first(static_cast<std::size_t>(fragments_applied)));
}

void SiteState::Data::lose_state(const std::string& reason) {
    drop_work(reason);
    plan.reset();
    current.clear();
    early.clear();
    kept.clear();
    waits.clear();
    fetched_again = false;
    fragments_applied = 0;
    told_held.reset();
    act(site_action::ForgetPackets{Round(std::numeric_limits<std::int64_t>::max())}, reason);
    enter(Phase::starting, reason);
}

void SiteState::Data::adopt_plan() {
    if (!view.plan || view.plan->round != round || (plan && *plan == *view.plan)) return;
    const std::optional<RoundPlan> before = plan;
    plan = *view.plan;
    waits.clear();
    const SitePlan* mine = plan->find(self());
    if (mine != nullptr && mine->incarnation != options.self.incarnation) mine = nullptr;
    if (mine == nullptr || !mine->contributes) {
        drop_work("the plan gives this site no work");
        enter(mine == nullptr ? Phase::ready : Phase::exchanging, plan->reason);
        return;
    }
    const SitePlan* old = before ? before->find(self()) : nullptr;
    told_held.reset();
    const bool same = old != nullptr && old->contributes && old->blocks == mine->blocks &&
                      before->first_step == plan->first_step && before->numbers == plan->numbers;
    if (working && same) {
        if (phase == Phase::ready) act(site_action::StartRound{*plan, false}, "goes on where it was");
        enter(phase_in_round(), "the work stays the same: " + plan->reason);
        return;
    }
    const bool dropped = working;
    drop_work("the work has changed: " + plan->reason);
    steps_done = plan->first_step;
    working = true;
    act(site_action::StartRound{*plan, dropped || before.has_value()}, plan->reason);
    enter(Phase::training, plan->reason);
}

void SiteState::Data::adopt_attempts() {
    if (!plan) return;
    for (const AttemptPlan& attempt : view.attempts) {
        if (attempt.round == round && attempt.fragment.value() >= fragments_applied)
            adopt_attempt(attempt, plan->fragment(attempt.fragment).chunks());
    }
}

void SiteState::Data::adopt_attempt(const AttemptPlan& attempt, std::int64_t chunks) {
    FragmentExchange& mine = exchange(attempt.fragment);
    if (mine.attempt() && *mine.attempt() == attempt) return;
    mine.adopt(attempt, chunks);
    waits.clear();
    if (attempt.attempt > Attempt(0)) {
        act(site_action::DiscardPackets{attempt.round, attempt.fragment, attempt.resend_since,
                                        attempt.attempt},
            attempt.reason);
    }
    if (working && !attempt.contributes(self())) {
        drop_work("not a contributor: " + attempt.reason);
        enter(attempt.is_member(self()) ? Phase::exchanging : Phase::ready, attempt.reason);
    } else if (phase == Phase::holding && attempt.fragment.value() == fragments_applied &&
               !mine.holds_all()) {
        enter(Phase::exchanging, attempt.reason);
    }
    send_own(mine);
    if (attempt.direct) return;
    for (const OwnerShare& share : attempt.owners) {
        if (share.site != self()) continue;
        for (std::int64_t i = 0; i < share.chunks; ++i) reduce_if_ready(mine, share.first_chunk + i);
    }
}

const Commit* SiteState::Data::next_commit() const {
    const std::vector<Commit>& commits = view.commits_of(round);
    const auto next = static_cast<std::size_t>(fragments_applied);
    return next < commits.size() ? &commits[next] : nullptr;
}

// The fragment whose turn it is has been committed: get what is missing of it, check it, apply it where it is due.
bool SiteState::Data::follow_commit(TimePoint now) {
    const Commit* commit = next_commit();
    if (commit == nullptr || !apply_is_due()) return false;
    FragmentExchange& mine = exchange(commit->fragment);
    const bool contributed = working && commit->contributes(self()) && mine.own_complete();
    const AttemptPlan attempt = attempt_of(*commit);
    const bool adopted = mine.attempt() && mine.attempt()->attempt == attempt.attempt &&
                         mine.attempt()->contributors == attempt.contributors;
    if (!adopted) {
        mine.adopt(attempt, commit->chunks);
        committed_asked.reset();
    }
    if (!mine.holds_all()) {
        ask_for_committed(*commit, mine, now);
        return true;
    }
    if (!packets_agree(*commit, mine, now)) return true;
    const Hash128 after = state_after(
        commit->state_before,
        std::span(view.commits_of(round)).first(static_cast<std::size_t>(fragments_applied) + 1));
    if (!contributed) drop_work("the commit is without this site");
    applying = site_action::ApplyCommit{*commit, contributed, after};
    act(*applying, fmt::format("round {} fragment {} is committed as attempt {}", round, commit->fragment,
                               commit->attempt));
    enter(Phase::applying, "applies a commit");
    return true;
}

// Do they make the committed hash? If not, all are fetched anew, once.
bool SiteState::Data::packets_agree(const Commit& commit, FragmentExchange& exchange, TimePoint now) {
    if (exchange.hash(commit.state_before) == commit.hash) return true;
    if (fetched_again) {
        lose_state(fmt::format("the packets of round {} do not make the committed hash", round));
        return false;
    }
    fetched_again = true;
    drop_work("diverged from the commit");
    exchange.forget_received();
    act(site_action::DiscardPackets{round, commit.fragment, commit.attempt.next(), commit.attempt.next()},
        "they do not make the committed hash");
    ask_for_committed(commit, exchange, now);
    return false;
}

}  // namespace atl
