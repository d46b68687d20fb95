// Attempts and commits: who is excluded and why, when a new attempt starts, when the round is decided.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "rounds/attempt_plan.h"
#include "rounds/commit_rule.h"
#include "rounds/coordinator_data.h"
#include "rounds/norm_test.h"

namespace atl {
namespace {

constexpr double kNormTolerance = 1e-3;  // of the sums that norms are made of
constexpr double kLeastNormOfInterest =
    1e-30;  // codecs' bounds don't hold for values near the smallest there are

template <class Id>
bool contains(const std::vector<Id>& ids, Id id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::vector<SiteId> CoordinatorState::Data::waiting_members(const std::vector<SiteId>& members) const {
    std::vector<SiteId> waiting;
    for (const SiteId member : members) {
        if (!removed.contains(member)) waiting.push_back(member);
    }
    return waiting;
}

// What the site last said about the attempt's fragment, in this round and not about void packets.
const FragmentReport* CoordinatorState::Data::fragment_report(SiteId site, const AttemptPlan& attempt) const {
    const KnownSite* known = membership.find(site);
    if (known == nullptr || known->report.round != attempt.round || !known->report.has_state())
        return nullptr;
    for (const FragmentReport& fragment : known->report.fragments) {
        if (fragment.fragment == attempt.fragment && fragment.attempt >= attempt.resend_since)
            return &fragment;
    }
    return nullptr;
}

void CoordinatorState::Data::advance_attempts(TimePoint now) {
    RoundRecord* round = open_record();
    if (round == nullptr || replan_due) return;
    for (const SitePlan& site : round->plan.sites) {
        const KnownSite* known = membership.find(site.site);
        const bool stateless = known != nullptr && known->report.sequence > 0 && !known->report.has_state();
        if (site.contributes && stateless) remove(site.site, "it no longer holds the state of this round");
        if (known != nullptr && is_cut_off_from_state(*known))
            remove(site.site, "nobody keeps the packets it lacks");
    }
    if (everybody_stopped(round->plan)) {
        end(0, false, fmt::format("stopped at step {} as told", *round->plan.stop_step));
        return;
    }
    bool changed = false;
    for (AttemptPlan& attempt : round->attempts) {
        const bool committed = std::any_of(round->commits.begin(), round->commits.end(),
                                           [&](const Commit& c) { return c.fragment == attempt.fragment; });
        if (!committed && !ending) changed = advance_fragment(*round, attempt, now) || changed;
    }
    if (changed && round->committed()) finish_round(*round);
}

// Inside a round: who is still there has written its checkpoint at the plan's stop step.
bool CoordinatorState::Data::everybody_stopped(const RoundPlan& plan) const {
    bool stopped = false;
    for (const SitePlan& work : plan.sites) {
        const KnownSite* site = membership.find(work.site);
        if (site == nullptr || !work.contributes) continue;
        if (site->live()) return false;
        stopped = stopped || site->report.phase == Phase::finished;
    }
    return stopped && plan.stop_step.has_value();
}

bool CoordinatorState::Data::advance_fragment(RoundRecord& round, AttemptPlan& attempt, TimePoint now) {
    cut_off_sites(round, attempt, now);
    Exclusions& out = excluded[attempt.fragment];
    out = judge_contributions(round, attempt);
    exclude_liars(attempt, out);
    exclude_implausible(attempt, out);
    if (!out.sites.empty()) return replace_attempt(round, attempt);
    std::vector<HeldHash> held;
    for (const SiteId member : waiting_members(attempt.members)) {
        const FragmentReport* report = fragment_report(member, attempt);
        const bool current = report != nullptr && report->attempt == attempt.attempt;
        held.push_back({member, current ? report->held : std::nullopt});
    }
    const CommitVerdict verdict = judge_commit(held, options.site_names);
    // Fragments are committed in their order: a state is known by how many of its round it has.
    const bool has_its_turn = attempt.fragment.value() == std::int64_t(round.commits.size());
    if (verdict.kind == CommitVerdict::Kind::wait || !has_its_turn) return false;
    if (verdict.kind == CommitVerdict::Kind::commit) {
        commit(round, attempt, verdict.hash);
    } else {
        settle_disagreement(round, attempt, verdict);
    }
    return true;
}

CoordinatorState::Data::Exclusions CoordinatorState::Data::judge_contributions(
    const RoundRecord& round, const AttemptPlan& attempt) const {
    Exclusions out;
    const std::vector<SiteId> waiting = waiting_members(attempt.members);
    for (const Contributor& contributor : attempt.contributors) {
        const SiteId site = contributor.site;
        // Who is left out of one fragment has dropped the round's work.
        for (const AttemptPlan& earlier : round.attempts) {
            if (earlier.fragment < attempt.fragment && !earlier.contributes(site))
                out.sites[site] = fmt::format("it is out of the round since fragment {}", earlier.fragment);
        }
        const FragmentReport* own = fragment_report(site, attempt);
        if (own != nullptr && own->contribution && !own->contribution->finite) {
            out.sites[site] = "its pseudo-gradient is not finite";
            out.by_content = true;
        }
        for (const SiteId member : waiting) {
            const FragmentReport* report = fragment_report(member, attempt);
            if (report != nullptr && report->attempt != attempt.attempt) report = nullptr;
            if (report != nullptr) {
                for (const Complaint& complaint : report->complaints) {
                    if (complaint.accused != site || complaint.kind == ComplaintKind::missing) continue;
                    out.sites[site] =
                        fmt::format("site {} found its packets {}", called(member), name(complaint.kind));
                    out.by_content = true;
                }
            }
            const auto removal = removed.find(site);
            if (removal == removed.end()) continue;
            // Only what a member says after it was told of the loss counts: packets may still have been on the way.
            const Report& said = membership.find(member)->report;
            if (said.term != record.term || said.version < removal->second.version) continue;
            if (said.round != round.plan.round) continue;
            if (report != nullptr && !contains(report->missing_contributions, site) &&
                !contains(report->missing_means, site)) {
                continue;
            }
            out.sites[site] =
                fmt::format("site {} misses its packets, and {}", called(member), removal->second.reason);
        }
    }
    return out;
}

// The size test believes what sites declare, so what was decoded of a contribution must not be larger. Owners have
// different chunks of it, members of a direct attempt all.
void CoordinatorState::Data::exclude_liars(const AttemptPlan& attempt, Exclusions& out) const {
    std::map<SiteId, double> decoded;
    for (const SiteId member : attempt.members) {
        const FragmentReport* report = fragment_report(member, attempt);
        if (report == nullptr || report->attempt != attempt.attempt) continue;
        for (const LeastNorm& least : report->least_norms) {
            double& norm = decoded[least.site];
            norm = attempt.direct ? std::max(norm, least.norm) : std::hypot(norm, least.norm);
        }
    }
    for (const Contributor& contributor : attempt.contributors) {
        const FragmentReport* own = fragment_report(contributor.site, attempt);
        if (own == nullptr || !own->contribution || !own->contribution->finite) continue;
        if (own->contribution->tensor_norms.empty()) continue;
        const double declared = total_norm(*own->contribution);
        const double least = decoded[contributor.site];
        if (least <= std::max(kLeastNormOfInterest, (1 + kNormTolerance) * declared)) continue;
        out.sites[contributor.site] = fmt::format(
            "it declares a norm of {:.4g}, and what it sent has one of {:.4g} at least", declared, least);
        out.by_content = true;
    }
}

void CoordinatorState::Data::exclude_implausible(const AttemptPlan& attempt, Exclusions& out) const {
    std::vector<DeclaredNorm> norms;
    for (const Contributor& contributor : attempt.contributors) {
        const FragmentReport* report = fragment_report(contributor.site, attempt);
        if (report == nullptr || !report->contribution || !report->contribution->finite) return;
        norms.push_back({contributor.site, total_norm(*report->contribution)});
    }
    std::vector<double> history;
    if (const auto known = norm_history.find(attempt.fragment); known != norm_history.end())
        history.assign(known->second.begin(), known->second.end());
    const std::vector<NormSuspect> suspects = implausible_norms(norms, history, options.norm_factor);
    // A test by size alone never stops the run.
    if (suspects.empty() || !enough(norms.size() - suspects.size() - out.sites.size())) return;
    for (const NormSuspect& suspect : suspects) out.sites[suspect.site] = suspect.reason;
    out.by_content = true;
}

void CoordinatorState::Data::cut_off_sites(const RoundRecord& round, const AttemptPlan& attempt,
                                           TimePoint now) {
    std::map<ComplaintEdge, TimePoint>& before = complaints[attempt.fragment];
    std::map<ComplaintEdge, TimePoint> current;
    for (const SiteId member : waiting_members(attempt.members)) {
        const FragmentReport* report = fragment_report(member, attempt);
        if (report == nullptr || report->attempt != attempt.attempt) continue;
        for (const Complaint& complaint : report->complaints) {
            if (complaint.kind != ComplaintKind::missing || removed.contains(complaint.accused)) continue;
            const ComplaintEdge edge{member, complaint.accused};
            const auto known = before.find(edge);
            current[edge] = known == before.end() ? now : known->second;
        }
    }
    before = current;
    const bool ripe = std::any_of(current.begin(), current.end(), [&](const auto& complaint) {
        return now - complaint.second >= options.timeouts.complaint_window;
    });
    if (!ripe) return;
    std::vector<ComplaintEdge> edges;
    std::vector<std::string> words;
    for (const auto& [edge, since] : current) {
        edges.push_back(edge);
        words.push_back(fmt::format("site {} misses site {}", called(edge.first), called(edge.second)));
    }
    std::map<SiteId, double> tokens;
    for (const SitePlan& site : round.plan.sites) tokens[site.site] = site.weight;
    for (const SiteId site : smallest_covering_set(edges, tokens)) {
        const std::string reason = fmt::format("it is cut off: {}", fmt::join(words, ", "));
        if (membership.live(site)) membership.set_gone(site, Standing::lost, reason);
        decide(coordinator_action::Note{}, fmt::format("site {} is lost: {}", called(site), reason));
        remove(site, reason);
    }
    before.clear();
}

bool CoordinatorState::Data::enough(std::size_t contributors) const {
    return std::int64_t(contributors) >= std::max<std::int64_t>(1, options.min_sites);
}

// Those whose Δ can be in the mean. A contributor that is gone counts as long as nobody misses its packets; in a new
// attempt everybody would.
std::vector<Contributor> CoordinatorState::Data::usable_contributors(const AttemptPlan& attempt) const {
    const auto found = excluded.find(attempt.fragment);
    if (found == excluded.end() || found->second.sites.empty()) return attempt.contributors;
    std::vector<Contributor> usable;
    for (const Contributor& contributor : attempt.contributors) {
        const bool out = found->second.sites.contains(contributor.site) || removed.contains(contributor.site);
        if (!out) usable.push_back(contributor);
    }
    return usable;
}

// A new attempt without the excluded and without anybody who is gone. False: too few would be left.
bool CoordinatorState::Data::replace_attempt(RoundRecord& round, AttemptPlan& attempt) {
    const std::vector<Contributor> contributors = usable_contributors(attempt);
    Exclusions& out = excluded[attempt.fragment];
    std::vector<std::string> words;
    for (const auto& [site, reason] : out.sites)
        words.push_back(fmt::format("without site {}: {}", called(site), reason));
    if (!enough(contributors.size())) {
        if (out.by_content) {
            end(1, true,
                fmt::format(
                    "round {} can't be completed {}; {} contributions are left, exchange.min_sites is "
                    "{}",
                    attempt.round, fmt::join(words, ", "), contributors.size(), options.min_sites));
        }
        return false;
    }
    attempt = next_attempt(attempt, round.plan, contributors, waiting_members(attempt.members), false,
                           fmt::format("{}", fmt::join(words, ", ")));
    out = {};
    complaints.clear();
    decide(coordinator_action::StoreRound{round},
           fmt::format("round {} attempt {} {}", attempt.round, attempt.attempt, attempt.reason));
    return true;
}

void CoordinatorState::Data::settle_disagreement(RoundRecord& round, AttemptPlan& attempt,
                                                 const CommitVerdict& verdict) {
    if (!contains(round.resent, attempt.fragment)) {
        std::vector<Contributor> contributors;
        for (const Contributor& contributor : attempt.contributors) {
            if (!removed.contains(contributor.site)) contributors.push_back(contributor);
        }
        if (enough(contributors.size())) {
            round.resent.push_back(attempt.fragment);
            attempt = next_attempt(attempt, round.plan, contributors, waiting_members(attempt.members), true,
                                   "all is sent again: " + verdict.reason);
            decide(coordinator_action::StoreRound{round},
                   fmt::format("round {} attempt {}: {}", attempt.round, attempt.attempt, attempt.reason));
            return;
        }
    }
    if (!verdict.majority) {
        end(1, false,
            fmt::format("round {}: the sites disagree and no side has a majority: {}", attempt.round,
                        verdict.reason));
        return;
    }
    for (const SiteId site : verdict.minority) {
        if (membership.live(site)) membership.set_gone(site, Standing::lost, "diverged");
        remove(site, "diverged");
        decide(coordinator_action::Note{},
               fmt::format("site {} has diverged: {}", called(site), verdict.reason));
    }
    commit(round, attempt, verdict.hash);
}

void CoordinatorState::Data::commit(RoundRecord& round, const AttemptPlan& attempt, const Hash128& hash) {
    Commit commit;
    commit.round = attempt.round;
    commit.fragment = attempt.fragment;
    commit.attempt = attempt.attempt;
    commit.resend_since = attempt.resend_since;
    commit.direct = attempt.direct;
    commit.contributors = attempt.contributors;
    commit.owners = attempt.owners;
    commit.members = waiting_members(attempt.members);
    commit.state_before = round.plan.state_before;
    commit.chunks = round.plan.fragment(attempt.fragment).chunks();
    commit.hash = hash;
    commit.apply_step = round.plan.apply_step(round.plan.fragment(attempt.fragment));
    commit.last_step = round.plan.last_step();
    commit.fragments = std::int64_t(round.plan.fragments.size());
    commit.numbers = round.plan.numbers;
    std::deque<double>& norms = norm_history[attempt.fragment];
    for (const Contributor& contributor : attempt.contributors) {
        const FragmentReport* report = fragment_report(contributor.site, attempt);
        if (report == nullptr || !report->contribution) continue;
        norms.push_back(total_norm(*report->contribution));
        if (norms.size() > kNormHistory) norms.pop_front();
    }
    round.commits.push_back(commit);
    decide(coordinator_action::StoreRound{round},
           fmt::format("round {} {}attempt {} is committed by site {} as {}", commit.round,
                       commit.fragments > 1 ? fmt::format("fragment {} ", commit.fragment) : "",
                       commit.attempt, site_list(options.site_names, commit.members), hash.hex()));
}

void CoordinatorState::Data::finish_round(const RoundRecord& round) {
    start_from.reset();
    start_deadline.reset();
    removed.clear();
    complaints.clear();
    for (const SitePlan& plan : round.plan.sites) {
        const KnownSite* site = membership.find(plan.site);
        if (site == nullptr || !site->live() || !site->report.leaving) continue;
        membership.set_gone(plan.site, Standing::left, "it has left");
        decide(coordinator_action::Note{}, fmt::format("site {} has left", called(plan.site)));
    }
}

bool CoordinatorState::Data::broken(const RoundRecord& round) const {
    for (const AttemptPlan& attempt : round.attempts) {
        const bool committed = std::any_of(round.commits.begin(), round.commits.end(),
                                           [&](const Commit& c) { return c.fragment == attempt.fragment; });
        if (committed) continue;
        if (waiting_members(attempt.members).empty()) return true;
        if (!enough(usable_contributors(attempt).size())) return true;
    }
    return false;
}

}  // namespace atl
