// The plans that a coordinator makes for sites that have all they need: work, weights, starts of exchanges.
#include <gtest/gtest.h>

#include "rounds/coordinator_state.h"

namespace atl {
namespace {

// A coordinator and sites that hold the initial state, without a network between them.
class Planned : public testing::Test {
  protected:
    Planned() {
        options_.run_id = "run";
        options_.site_names = {"fast", "slow"};
        options_.numbers.inner_steps = 6;
        options_.numbers.total_steps = 18;
    }

    const RoundPlan& plan() {
        state_.emplace(options_, CoordinatorRecord{});
        state_->handle(coordinator_event::Started{}, now_);
        for (const Phase phase : {Phase::starting, Phase::ready})
            for (int site = 0; site < 2; ++site) report(site, phase);
        EXPECT_TRUE(state_->view().plan.has_value());
        return *state_->view().plan;
    }

    // Round after round is committed as soon as it is planned; the plan of the one with this number.
    const RoundPlan& plan_of(std::int64_t round) {
        plan();
        for (std::int64_t done = 0; done < round; ++done) commit();
        return *state_->view().plan;
    }

    const Commit& last_commit() const { return state_->record().rounds.begin()->second.commits.front(); }

    void commit() {
        const RoundPlan plan = *state_->view().plan;
        for (int site = 0; site < 2; ++site) report(site, Phase::holding, plan.round);
        const auto& commits = state_->record().rounds.at(plan.round).commits;
        ASSERT_EQ(commits.size(), 1U);
        hash_ = commits.front().hash;
        for (int site = 0; site < 2; ++site) report(site, Phase::ready, plan.round.next());
    }

  private:
    void report(int site, Phase phase, Round round = Round(0)) {
        Report report{.run_id = "run", .phase = phase, .round = round, .state_hash = hash_};
        report.site = {SiteId(site), options_.site_names[static_cast<std::size_t>(site)], Incarnation(1), ""};
        report.term = state_->view().term;
        report.version = state_->version();
        report.sequence = ++sequence_;
        report.hello = Hello{.settings = {}, .blocks_per_epoch = 1000, .fragment_elements = {100}, .checkpoints = {}};
        if (phase == Phase::holding) {
            FragmentReport held{.fragment = FragmentId(0)};
            held.contribution = ContributionFacts{true, {1.0}};
            held.held = Hash128{7, static_cast<std::uint64_t>(round.value())};
            report.steps_done = state_->view().plan->last_step();
            report.fragments.push_back(held);
        }
        state_->handle(coordinator_event::ReportReceived{report}, now_);
    }

  protected:
    CoordinatorOptions options_;

  private:
    std::optional<CoordinatorState> state_;
    TimePoint now_{};
    Hash128 hash_{1, 2};
    std::int64_t sequence_ = 0;
};

TEST_F(Planned, a_slower_site_has_its_part_of_the_steps_and_weighs_as_much_in_the_mean) {
    options_.numbers.site_inner_steps[SiteId(1)] = 2;
    const RoundPlan plan = this->plan();
    ASSERT_EQ(plan.sites.size(), 2U);
    EXPECT_EQ(plan.inner_steps(), 6);
    EXPECT_EQ(plan.sites[0].inner_steps, 6);
    EXPECT_EQ(plan.sites[1].inner_steps, 2);
    EXPECT_EQ(plan.sites[0].weight, 6);
    EXPECT_EQ(plan.sites[1].weight, 2);
    commit();
    EXPECT_EQ(last_commit().contributors, (std::vector<Contributor>{{SiteId(0), 6}, {SiteId(1), 2}}));
}

TEST_F(Planned, an_exchange_that_waits_starts_and_is_applied_when_the_round_ends) {
    const RoundPlan& plan = plan_of(1);
    EXPECT_EQ(plan.fragments[0].start_step, Step(12));
    EXPECT_EQ(plan.apply_step(plan.fragments[0]), Step(12));
}

TEST_F(Planned, an_exchange_that_is_a_round_late_starts_with_the_round_and_the_last_round_waits) {
    options_.numbers.a_round_late = true;
    const RoundPlan plan = plan_of(1);
    EXPECT_EQ(plan.first_step, Step(6));
    EXPECT_EQ(plan.fragments[0].start_step, Step(6));
    EXPECT_EQ(plan.apply_step(plan.fragments[0]), Step(12));
    const RoundPlan& last = plan_of(2);
    EXPECT_EQ(last.last_step(), Step(18));
    EXPECT_EQ(last.numbers.overlap_steps, 0);
    EXPECT_EQ(last.fragments[0].start_step, Step(18));
}

TEST_F(Planned, warm_up_rounds_are_averages) {
    options_.numbers.method.outer_lr = 0.5;
    options_.numbers.method.outer_momentum = 0.8;
    options_.numbers.warmup_rounds = 1;
    EXPECT_EQ(plan_of(0).numbers.outer_lr, 1);
    EXPECT_EQ(plan_of(0).numbers.outer_momentum, 0);
    EXPECT_EQ(plan_of(2).numbers.outer_lr, 0.5);
    EXPECT_EQ(plan_of(2).numbers.outer_momentum, 0.8);
}

}  // namespace
}  // namespace atl
