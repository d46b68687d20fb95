// Where sites without state begin: a fresh run, a resume, or a coordinator that finds nobody alive with the state of
// the open round.
#include <fmt/format.h>

#include <algorithm>

#include "rounds/coordinator_data.h"
#include "rounds/resume.h"

namespace atl {

bool CoordinatorState::Data::has_base_state(const KnownSite& site) const {
    if (!site.live() || site.report.sequence == 0 || !site.report.has_state()) return false;
    const Round next = next_round();
    const Round at = site.report.round;
    if (at != next && at.next() != next) return false;
    if (at == next && !base_hash()) return true;
    const auto hash = state_hash(at, site.report.fragments_applied);
    if (!hash || site.report.state_hash != *hash) return false;
    const RoundRecord* commits = at == next ? open_record() : last_committed();
    return commits == nullptr || packets_are_kept(*commits, site.report.fragments_applied);
}

// Without them a site that has not applied them is lost.
bool CoordinatorState::Data::packets_are_kept(const RoundRecord& round, std::int64_t from) const {
    return std::all_of(round.commits.begin() + from, round.commits.end(), [&](const Commit& commit) {
        return std::any_of(membership.sites().begin(), membership.sites().end(), [&](const auto& entry) {
            const std::vector<KeptFragment>& kept = entry.second.report.kept;
            const KeptFragment needed{commit.round, commit.fragment};
            return entry.second.live() && std::find(kept.begin(), kept.end(), needed) != kept.end();
        });
    });
}

// It would wait for ever: those it could ask have begun anew from a checkpoint. When the run has gone on without it, it
// fetches a newer state.
bool CoordinatorState::Data::is_cut_off_from_state(const KnownSite& site) const {
    const bool has_state = site.live() && site.report.sequence > 0 && site.report.has_state();
    return has_state && !anybody_suspect() && !has_base_state(site);
}

bool CoordinatorState::Data::anybody_has_state() const {
    return std::any_of(membership.sites().begin(), membership.sites().end(),
                       [&](const auto& entry) { return has_base_state(entry.second); });
}

bool CoordinatorState::Data::anybody_suspect() const {
    return std::any_of(membership.sites().begin(), membership.sites().end(),
                       [](const auto& entry) { return entry.second.standing == Standing::suspect; });
}

void CoordinatorState::Data::advance_start(TimePoint now) {
    if (anybody_has_state()) {
        if (!start_from && !record.rounds.empty()) start_deadline.reset();
        return;
    }
    if (anybody_suspect()) return;
    if (start_from) {
        // Whoever could load the chosen checkpoint may be gone: choose again.
        const CheckpointRef chosen{start_from->step, start_from->round, start_from->state_hash,
                                   start_from->fragments_applied};
        // What was committed since then, and is kept by nobody, leaves no way on from it.
        const RoundRecord* open = open_record();
        const bool leads_on = open == nullptr || std::ssize(open->commits) <= start_from->fragments_applied;
        const bool loadable =
            start_from->kind == StartFrom::Kind::initial ||
            std::any_of(membership.sites().begin(), membership.sites().end(), [&](const auto& entry) {
                const KnownSite& site = entry.second;
                return site.live() && site.hello &&
                       std::count(site.hello->checkpoints.begin(), site.hello->checkpoints.end(), chosen) > 0;
            });
        if (loadable && leads_on) return;
        start_from.reset();
        start_deadline.reset();
    }
    choose_start_point(now);
}

void CoordinatorState::Data::choose_start_point(TimePoint now) {
    std::map<SiteId, std::vector<CheckpointRef>> offers;
    for (const auto& [id, site] : membership.sites()) {
        // Whatever state it has is of no use: nobody has one that the run can go on from.
        if (site.live() && site.hello) offers[id] = site.hello->checkpoints;
    }
    if (!start_deadline) start_deadline = now + options.timeouts.join;
    const bool all_there = offers.size() == options.site_names.size();
    if (!all_there && now < *start_deadline) return;
    if (offers.empty() || std::int64_t(offers.size()) < options.min_sites) {
        end(1, false,
            fmt::format("{} of {} sites came within {} ms; exchange.min_sites is {}", offers.size(),
                        options.site_names.size(), options.timeouts.join.count(), options.min_sites));
        return;
    }
    const StartFrom start = choose_start(offers, [&](const CheckpointRef& checkpoint) {
        const auto hash = state_hash(checkpoint.round, checkpoint.fragments_applied);
        return hash && *hash == checkpoint.state_hash;
    });
    const bool offered =
        std::any_of(offers.begin(), offers.end(), [](const auto& o) { return !o.second.empty(); });
    if (start.kind == StartFrom::Kind::initial && offered) {
        end(1, false,
            "the sites hold checkpoints, but none of a round that this coordinator has a record of: give it "
            "the database that belongs to them, or start without resuming");
        return;
    }
    start_from = start;
    start_deadline = now + options.timeouts.join;
    removed.clear();
    complaints.clear();
    quorum_deadline.reset();
    if (!record.rounds.empty()) {
        const bool fresh = start.kind == StartFrom::Kind::initial;
        const Round last = fresh ? Round(-1) : start.round;
        record.rounds.erase(record.rounds.upper_bound(last), record.rounds.end());
        if (view.evaluation && view.evaluation->round >= last) view.evaluation.reset();
        for (auto& [site, costs] : record.costs)
            std::erase_if(costs, [&](const RoundCost& cost) { return cost.round >= last; });
        decide(coordinator_action::TruncateRounds{last}, fmt::format("rounds after {} are undone", last));
        const auto reopened = record.rounds.find(last);
        if (reopened != record.rounds.end()) {
            reopened->second.commits.resize(std::size_t(start.fragments_applied));
            reopened->second.resent.clear();
            decide(coordinator_action::StoreRound{reopened->second},
                   fmt::format("round {} is open again", last));
        }
        record.term = record.term.next();
        decide(coordinator_action::StoreTerm{record.term}, fmt::format("term {} begins", record.term));
    }
    replan_due = open_record() != nullptr;
    decide(coordinator_action::Note{}, start.reason);
}

bool CoordinatorState::Data::start_complete(TimePoint now) const {
    if (!start_deadline || now >= *start_deadline) return true;
    const bool wait_for_absent = record.rounds.empty() && !start_from;
    for (std::size_t index = 0; index < options.site_names.size(); ++index) {
        const KnownSite* site = membership.find(SiteId(std::int32_t(index)));
        if (site == nullptr && wait_for_absent) return false;
        if (site != nullptr && site->live() && !(has_base_state(*site) && site->hello)) return false;
    }
    return true;
}

}  // namespace atl
