// Round plans: who works on what in the next round, made when the last one is committed, or anew for an open round
// that those who are left can't commit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"
#include "rounds/attempt_plan.h"
#include "rounds/coordinator_data.h"
#include "rounds/fragment_schedule.h"
#include "rounds/warmup.h"

namespace atl {
namespace {

constexpr double kAlikeRates = 1.25;

}  // namespace

void CoordinatorState::Data::advance_plan(TimePoint now) {
    const RoundRecord* open = open_record();
    if (open != nullptr && !replan_due && !broken(*open)) {
        quorum_deadline.reset();
        return;
    }
    // A finished run that is resumed ends when the sites have loaded what it came to.
    const bool begun = start_complete(now) && anybody_has_state();
    if ((!begun && !stop_reason) || nothing_left_to_do()) return;
    const std::vector<SiteId> able = able_contributors();
    if (!enough(able.size())) {
        wait_for_quorum(able.size(), now);
        return;
    }
    const Hash128 state = membership.find(able.front())->report.state_hash;
    for (const SiteId site : able) {
        const KnownSite& other = *membership.find(site);
        if (base_hash() || other.report.state_hash == state) continue;
        end(1, false,
            fmt::format("sites {} and {} begin with different states: {} and {}", able.front(), site,
                        state.hex(), other.report.state_hash.hex()));
        return;
    }
    quorum_deadline.reset();
    make_plan(able);
}

bool CoordinatorState::Data::nothing_left_to_do() {
    const RoundRecord* last = last_committed();
    const Step done = last == nullptr ? Step(0) : last->commits.front().last_step;
    const RunNumbers& numbers = options.numbers;
    if (stop_reason) {
        end(0, true, *stop_reason);
    } else if (done.value() >= numbers.total_steps) {
        end(0, true, fmt::format("all {} steps are done", numbers.total_steps));
    } else if (numbers.stop_at && done >= *numbers.stop_at) {
        end(0, true, fmt::format("stopped at step {} as told", *numbers.stop_at));
    }
    return ending.has_value();
}

std::vector<SiteId> CoordinatorState::Data::able_contributors() const {
    std::vector<SiteId> able;
    for (const auto& [id, site] : membership.sites()) {
        // The first plan is made of what the sites say they are.
        const bool known = site.hello || !record.rounds.empty();
        if (has_base_state(site) && known && !site.report.leaving) able.push_back(id);
    }
    return able;
}

void CoordinatorState::Data::wait_for_quorum(std::size_t able, TimePoint now) {
    const std::string state = fmt::format(
        "{} of the {} sites that exchange.min_sites asks for can contribute", able, options.min_sites);
    if (!quorum_deadline) {
        quorum_deadline = now + options.timeouts.quorum;
        decide(coordinator_action::Note{},
               fmt::format("waiting up to {} ms: {}", options.timeouts.quorum.count(), state));
    } else if (now >= *quorum_deadline) {
        end(1, true, fmt::format("{}, and {} ms have passed", state, options.timeouts.quorum.count()));
    }
}

Ledger CoordinatorState::Data::ledger_before_plan(const std::vector<SiteId>& contributors) const {
    if (const RoundRecord* open = open_record()) {
        Ledger ledger = open->ledger;
        for (const SitePlan& site : open->plan.sites) {
            // Part of what it trained on is in the run already.
            const bool counted =
                std::any_of(open->commits.begin(), open->commits.end(),
                            [&](const Commit& commit) { return commit.contributes(site.site); });
            if (!counted && !std::binary_search(contributors.begin(), contributors.end(), site.site))
                ledger.give_back(site.site);
        }
        return ledger;
    }
    if (const RoundRecord* last = last_committed()) {
        std::vector<SiteId> counted;
        for (const Commit& commit : last->commits) {
            for (const Contributor& contributor : commit.contributors) counted.push_back(contributor.site);
        }
        Ledger ledger = last->ledger;
        ledger.settle(counted);
        return ledger;
    }
    Ledger ledger;
    for (const auto& [id, site] : membership.sites()) {
        if (site.hello) ledger.blocks_per_epoch = site.hello->blocks_per_epoch;
    }
    return ledger;
}

// The fragments as the first round has them, or as the sites say they are.
std::vector<FragmentPlan> CoordinatorState::Data::fragment_layouts() const {
    std::vector<FragmentPlan> fragments;
    if (!record.rounds.empty()) {
        fragments = record.rounds.rbegin()->second.plan.fragments;
    } else {
        for (const auto& [id, site] : membership.sites()) {
            if (!site.hello || !fragments.empty()) continue;
            for (const std::int64_t elements : site.hello->fragment_elements) {
                FragmentPlan fragment;
                fragment.id = FragmentId(std::int32_t(fragments.size()));
                fragment.elements = elements;
                fragment.chunk_elements = options.numbers.chunk_elements.value_or(chunk_elements_for(elements));
                fragments.push_back(fragment);
            }
        }
    }
    ATOLL_CHECK(!fragments.empty(), "no site has said what its fragments are");
    return fragments;
}

// How many steps the round has, and the numbers that depend on where in the run it is.
void CoordinatorState::Data::plan_steps(RoundPlan& plan, std::int64_t& inner_steps) const {
    const RunNumbers& numbers = options.numbers;
    const auto fragments = static_cast<std::int64_t>(plan.fragments.size());
    const OuterStep step =
        warmed_up({.lr = numbers.method.outer_lr, .momentum = numbers.method.outer_momentum},
                  numbers.warmup_rounds, plan.round);
    plan.numbers = numbers.method;
    plan.numbers.outer_lr = step.lr;
    plan.numbers.outer_momentum = step.momentum;
    inner_steps = round_steps(numbers.inner_steps, numbers.total_steps - plan.first_step.value(), fragments);
    const bool last = plan.first_step.value() + inner_steps >= numbers.total_steps;
    if (numbers.a_round_late)
        plan.numbers.overlap_steps = last ? 0 : inner_steps;  // the last one waits for what is still to come
    else
        plan.numbers.overlap_steps = fitting_overlap(numbers.method.overlap_steps, inner_steps, fragments);
}

// Of a round with so many steps: all of them, or a slower site's part.
std::int64_t CoordinatorState::Data::site_steps(SiteId site, std::int64_t inner_steps) const {
    const RunNumbers& numbers = options.numbers;
    const auto own = numbers.site_inner_steps.find(site);
    if (own == numbers.site_inner_steps.end()) return inner_steps;
    return std::clamp<std::int64_t>(inner_steps * own->second / numbers.inner_steps, 1, inner_steps);
}

void CoordinatorState::Data::plan_fragments(RoundPlan& plan) const {
    const FragmentSchedule schedule{.inner_steps = static_cast<int>(plan.inner_steps()),
                                    .fragments = static_cast<int>(plan.fragments.size()),
                                    .overlap_steps = static_cast<int>(plan.numbers.overlap_steps),
                                    .first_step = plan.first_step};
    schedule.check();
    for (FragmentPlan& fragment : plan.fragments) fragment.start_step = schedule.start_step(fragment.id);
}

void CoordinatorState::Data::set_flags(RoundPlan& plan) const {
    const RunNumbers& numbers = options.numbers;
    const std::int64_t first = plan.first_step.value();
    const std::int64_t last = plan.last_step().value();
    if (numbers.stop_at && numbers.stop_at->value() > first && numbers.stop_at->value() <= last) {
        plan.stop_step = *numbers.stop_at;
    } else if (last >= numbers.total_steps) {
        plan.stop_step = Step(numbers.total_steps);
    }
    if (numbers.checkpoint_interval > 0) {
        const std::int64_t interval = numbers.checkpoint_interval;
        for (std::int64_t step = (first / interval + 1) * interval; step <= last; step += interval) {
            plan.checkpoint_steps.push_back(Step(step));
        }
    }
    if (plan.stop_step) {
        std::erase_if(plan.checkpoint_steps, [&](Step step) { return step >= *plan.stop_step; });
        plan.checkpoint_steps.push_back(*plan.stop_step);
    }
    // Sites that do different numbers of steps meet at the round's end alone.
    const bool in_step = std::all_of(plan.sites.begin(), plan.sites.end(), [&](const SitePlan& site) {
        return !site.contributes || site.inner_steps == plan.inner_steps();
    });
    if (!in_step) {
        if (plan.stop_step) plan.stop_step = plan.last_step();
        if (!plan.checkpoint_steps.empty()) plan.checkpoint_steps = {plan.last_step()};
    }
    const bool due =
        numbers.evaluate_interval > 0 && plan.round.next().value() % numbers.evaluate_interval == 0;
    plan.evaluate = due || last >= numbers.total_steps;
}

// As the contributors measured them, if all did and they differ by more than measuring does.
void CoordinatorState::Data::plan_send_rates(RoundPlan& plan) const {
    double slowest = std::numeric_limits<double>::infinity();
    double fastest = 0;
    for (const SitePlan& site : plan.sites) {
        if (!site.contributes) continue;
        const double rate = membership.find(site.site)->report.send_bytes_per_second;
        slowest = std::min(slowest, rate);
        fastest = std::max(fastest, rate);
    }
    if (options.numbers.equal_shares || fastest <= kAlikeRates * slowest) return;
    if (slowest <= 0) return;
    std::vector<std::string> words;
    for (SitePlan& site : plan.sites) {
        if (!site.contributes) continue;
        site.send_bytes_per_second = membership.find(site.site)->report.send_bytes_per_second;
        words.push_back(fmt::format("{} {:.0f}", called(site.site), 8e-6 * site.send_bytes_per_second));
    }
    plan.reason += fmt::format("; shares follow what they send, in Mbit/s: {}", fmt::join(words, ", "));
}

void CoordinatorState::Data::make_plan(const std::vector<SiteId>& contributors) {
    const RoundRecord* previous = open_record();
    const RoundRecord* last = last_committed();
    RoundRecord round;
    round.ledger = ledger_before_plan(contributors);
    RoundPlan& plan = round.plan;
    plan.run_id = options.run_id;
    plan.term = record.term;
    plan.round = next_round();
    plan.first_step = last == nullptr ? Step(0) : last->commits.front().last_step;
    plan.state_before = base_hash().value_or(membership.find(contributors.front())->report.state_hash);
    plan.fragments = fragment_layouts();
    std::int64_t inner_steps = 0;
    if (previous == nullptr) {
        plan_steps(plan, inner_steps);
    } else {
        inner_steps = previous->plan.inner_steps();
        plan.numbers = previous->plan.numbers;
        round.commits = previous->commits;
        for (const AttemptPlan& old : previous->attempts) {
            plan.first_attempt = std::max(plan.first_attempt, old.attempt.next());
        }
    }
    for (const auto& [id, site] : membership.sites()) {
        const bool contributes = std::binary_search(contributors.begin(), contributors.end(), id);
        const bool receives = site.live() && site.standing != Standing::suspect && !site.report.leaving;
        if (!contributes && !receives) continue;
        SitePlan work{
            .site = id, .incarnation = site.info.incarnation, .contributes = contributes, .blocks = {}};
        if (contributes) {
            const auto lease = round.ledger.leases.find(id);
            work.blocks = lease != round.ledger.leases.end()
                              ? lease->second
                              : round.ledger.lease(id, site_steps(id, inner_steps));
            work.inner_steps = block_count(work.blocks);
            work.weight = double(work.inner_steps);
        }
        plan.sites.push_back(work);
        membership.set_active(id);
    }
    plan_fragments(plan);
    set_flags(plan);
    plan.reason =
        fmt::format("{} steps each by site {}", inner_steps, site_list(options.site_names, contributors));
    plan_send_rates(plan);
    if (previous != nullptr) {
        plan.reason += ", planned anew";
    } else if (!change_reason.empty()) {
        plan.reason += "; " + std::exchange(change_reason, {});
    }
    for (const FragmentPlan& fragment : plan.fragments) {
        const auto number = std::size_t(fragment.id.value());
        round.attempts.push_back(number < round.commits.size()
                                     ? attempt_of(round.commits[number])
                                     : first_attempt(plan, fragment, options.numbers.gather));
    }
    removed.clear();
    complaints.clear();
    excluded.clear();
    replan_due = false;
    record.rounds[plan.round] = round;
    decide(coordinator_action::StoreRound{round},
           fmt::format("round {} is planned: {}", plan.round, plan.reason));
}

}  // namespace atl
