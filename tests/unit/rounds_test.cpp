// The small rules of the round protocol, each alone: ledger, complaints, norms, commit, resume, chunk shares.
#include <gtest/gtest.h>

#include "core/check.h"
#include "rounds/attempt_plan.h"
#include "rounds/commit_rule.h"
#include "rounds/complaints.h"
#include "rounds/coordinator_state.h"
#include "rounds/fragment_schedule.h"
#include "rounds/ledger.h"
#include "rounds/norm_test.h"
#include "rounds/resume.h"
#include "rounds/site_state.h"
#include "rounds/warmup.h"

namespace atl {
namespace {

SiteId site(int id) {
    return SiteId(id);
}

TEST(Ledger, leases_blocks_in_order_across_epochs) {
    Ledger ledger{.blocks_per_epoch = 10};
    EXPECT_EQ(ledger.lease(site(0), 4), (std::vector<BlockRange>{{0, 0, 4}}));
    EXPECT_EQ(ledger.lease(site(1), 8), (std::vector<BlockRange>{{0, 4, 6}, {1, 0, 2}}));
}

TEST(Ledger, leases_first_what_an_excluded_site_gave_back) {
    Ledger ledger{.blocks_per_epoch = 100};
    ledger.lease(site(0), 5);
    ledger.lease(site(1), 5);
    ledger.lease(site(2), 5);
    ledger.settle({site(0), site(2)});
    EXPECT_EQ(ledger.lease(site(0), 3), (std::vector<BlockRange>{{0, 5, 3}}));
    EXPECT_EQ(ledger.lease(site(1), 3), (std::vector<BlockRange>{{0, 8, 2}, {0, 15, 1}}));
}

TEST(Ledger, merges_neighbours_that_come_back) {
    Ledger ledger{.blocks_per_epoch = 100};
    ledger.lease(site(0), 5);
    ledger.lease(site(1), 5);
    ledger.settle({});
    EXPECT_EQ(ledger.returned, (std::vector<BlockRange>{{0, 0, 10}}));
}

TEST(Complaints, a_site_cut_off_from_all_goes_alone) {
    const std::vector<ComplaintEdge> edges{
        {site(0), site(2)}, {site(1), site(2)}, {site(3), site(2)}, {site(2), site(0)}};
    EXPECT_EQ(smallest_covering_set(edges, {}), std::vector<SiteId>{site(2)});
}

TEST(Complaints, between_two_the_one_with_fewer_tokens_goes_and_then_the_higher_id) {
    const std::vector<ComplaintEdge> edges{{site(0), site(1)}};
    EXPECT_EQ(smallest_covering_set(edges, {{site(0), 10}, {site(1), 20}}), std::vector<SiteId>{site(0)});
    EXPECT_EQ(smallest_covering_set(edges, {{site(0), 10}, {site(1), 10}}), std::vector<SiteId>{site(1)});
}

TEST(Complaints, two_separate_cuts_need_two_sites) {
    const std::vector<ComplaintEdge> edges{{site(0), site(1)}, {site(2), site(3)}};
    EXPECT_EQ(smallest_covering_set(edges, {}), (std::vector<SiteId>{site(1), site(3)}));
}

TEST(Complaints, many_sites_are_covered_too) {
    std::vector<ComplaintEdge> edges;
    for (int i = 0; i < 30; ++i) {
        if (i != 7) edges.push_back({site(i), site(7)});
    }
    EXPECT_EQ(smallest_covering_set(edges, {}), std::vector<SiteId>{site(7)});
}

TEST(NormTest, judges_against_the_median_of_three_or_more) {
    const auto suspects = implausible_norms({{site(0), 1}, {site(1), 1.2}, {site(2), 9}}, {}, 5);
    ASSERT_EQ(suspects.size(), 1U);
    EXPECT_EQ(suspects[0].site, site(2));
    EXPECT_NE(suspects[0].reason.find("over 5 times 1.2"), std::string::npos) << suspects[0].reason;
}

TEST(NormTest, judges_two_against_the_history_and_nobody_without_one) {
    const std::vector<DeclaredNorm> norms{{site(0), 1}, {site(1), 50}};
    EXPECT_TRUE(implausible_norms(norms, {1, 1, 1}, 5).empty());
    EXPECT_EQ(implausible_norms(norms, {1, 1, 1, 1, 1, 1}, 5).size(), 1U);
}

TEST(CommitRule, waits_for_everybody_who_is_not_lost_and_names_them) {
    const CommitVerdict verdict = judge_commit(
        {{site(0), Hash128{1, 1}}, {site(1), std::nullopt}, {site(2), std::nullopt}}, {"north", "south"});
    EXPECT_EQ(verdict.kind, CommitVerdict::Kind::wait);
    EXPECT_EQ(verdict.reason, "waiting for site south, 2");
}

TEST(CommitRule, commits_equal_hashes) {
    const CommitVerdict verdict =
        judge_commit({{site(0), Hash128{1, 1}}, {site(1), Hash128{1, 1}}}, {"north", "south", "west"});
    EXPECT_EQ(verdict.kind, CommitVerdict::Kind::commit);
    EXPECT_EQ(verdict.hash, (Hash128{1, 1}));
}

TEST(CommitRule, finds_the_minority_or_names_both_hashes) {
    const Hash128 a{1, 1};
    const Hash128 b{2, 2};
    const CommitVerdict majority =
        judge_commit({{site(0), a}, {site(1), b}, {site(2), a}}, {"north", "south", "west"});
    EXPECT_EQ(majority.kind, CommitVerdict::Kind::disagree);
    EXPECT_TRUE(majority.majority);
    EXPECT_EQ(majority.minority, std::vector<SiteId>{site(1)});
    const CommitVerdict tie = judge_commit({{site(0), a}, {site(1), b}}, {"north", "south", "west"});
    EXPECT_FALSE(tie.majority);
    EXPECT_NE(tie.reason.find(a.hex()), std::string::npos);
    EXPECT_NE(tie.reason.find(b.hex()), std::string::npos);
}

TEST(Resume, takes_the_newest_checkpoint_that_all_hold) {
    const CheckpointRef old{Step(10), Round(1), Hash128{1, 1}};
    const CheckpointRef newer{Step(20), Round(2), Hash128{2, 2}};
    const auto usable = [](const CheckpointRef&) { return true; };
    EXPECT_EQ(choose_start({{site(0), {old, newer}}, {site(1), {old}}}, usable).step, Step(10));
    EXPECT_EQ(choose_start({{site(0), {old, newer}}, {site(1), {newer}}}, usable).step, Step(20));
}

TEST(Resume, takes_the_newest_of_any_site_if_none_is_common_and_skips_unusable_ones) {
    const CheckpointRef old{Step(10), Round(1), Hash128{1, 1}};
    const CheckpointRef newer{Step(20), Round(2), Hash128{2, 2}};
    EXPECT_EQ(choose_start({{site(0), {newer}}, {site(1), {old}}}, [](const auto&) { return true; }).step,
              Step(20));
    const auto only_old = [&](const CheckpointRef& checkpoint) { return checkpoint == old; };
    EXPECT_EQ(choose_start({{site(0), {newer}}, {site(1), {old}}}, only_old).step, Step(10));
    const StartFrom none = choose_start({{site(0), {newer}}}, [](const auto&) { return false; });
    EXPECT_EQ(none.kind, StartFrom::Kind::initial);
}

TEST(Plan, cuts_a_fragment_into_a_few_hundred_chunks) {
    EXPECT_EQ(chunk_elements_for(1), 16'384);
    EXPECT_EQ(chunk_elements_for(1'000'000), 16'384);
    EXPECT_EQ(chunk_elements_for(6'000'000), 16'384);
    EXPECT_EQ(chunk_elements_for(25'000'000), 65'536);
    EXPECT_EQ(chunk_elements_for(100'000'000), 262'144);
    EXPECT_EQ(chunk_elements_for(10'000'000'000), 262'144);
    for (std::int64_t elements = 16'384 * 256; elements < 262'144 * 512; elements += 1'234'567) {
        const FragmentPlan fragment{.elements = elements, .chunk_elements = chunk_elements_for(elements)};
        EXPECT_GE(fragment.chunks(), 256);
        EXPECT_LE(fragment.chunks(), 512);
        EXPECT_EQ(fragment.chunk_elements % 4096, 0) << "what top_k looks at";
    }
}

TEST(Plan, shares_chunks_completely_and_in_proportion) {
    for (std::int64_t chunks = 0; chunks < 40; ++chunks) {
        const auto owners = share_chunks(chunks, {site(0), site(1), site(2)}, {1, 2, 1});
        std::int64_t next = 0;
        for (const OwnerShare& owner : owners) {
            EXPECT_EQ(owner.first_chunk, next);
            next += owner.chunks;
        }
        EXPECT_EQ(next, chunks);
    }
    EXPECT_EQ(share_chunks(8, {site(4), site(6)}, {1, 3})[1], (OwnerShare{site(6), 2, 6}));
}

TEST(Plan, hash_changes_with_every_part_of_the_plan) {
    RoundPlan plan;
    plan.sites = {{.site = site(0), .inner_steps = 3, .blocks = {{0, 0, 3}}}};
    plan.fragments = {{FragmentId(0), 100, 16, Step(3)}};
    const Hash128 hash = plan.hash();
    RoundPlan other = plan;
    other.sites[0].blocks[0].first = 1;
    EXPECT_NE(other.hash(), hash);
    other = plan;
    other.numbers.outer_lr = 0.5;
    EXPECT_NE(other.hash(), hash);
    other = plan;
    other.stop_step = Step(2);
    EXPECT_NE(other.hash(), hash);
}

TEST(FragmentSchedule, with_one_fragment_is_the_end_of_the_round) {
    const FragmentSchedule schedule{.inner_steps = 5, .first_step = Step(10)};
    EXPECT_EQ(schedule.start_step(FragmentId(0)), Step(15));
    EXPECT_EQ(schedule.apply_step(FragmentId(0)), Step(15));
}

TEST(FragmentSchedule, gives_every_fragment_one_turn_a_round_a_round_apart_with_one_pending_at_most) {
    for (const int fragments : {1, 2, 3, 4, 7}) {
        const int overlap = 30 / fragments - 1;
        std::vector<int> turns(std::size_t(fragments), 0);
        Step free_from(0);
        for (std::int64_t round = 0; round < 4; ++round) {
            const FragmentSchedule schedule{30, fragments, overlap, Step(30 * round)};
            for (std::int32_t p = 0; p < fragments; ++p) {
                const FragmentId fragment(p);
                EXPECT_EQ(schedule.starts_after(schedule.start_step(fragment)), fragment);
                EXPECT_EQ(schedule.applies_after(schedule.apply_step(fragment)), fragment);
                EXPECT_GE(schedule.start_step(fragment), free_from);
                EXPECT_EQ(schedule.apply_step(fragment).value(), schedule.start_step(fragment).value() + overlap);
                free_from = schedule.apply_step(fragment);
                // As often as it fits into the steps done: floor((T − t) / n) with t its place before the run.
                const std::int64_t place = (p + 1) * 30 / fragments - 30;
                EXPECT_EQ(++turns[std::size_t(p)], (free_from.value() - place) / 30);
            }
            EXPECT_EQ(free_from, Step(30 * (round + 1))) << "nothing is pending between rounds";
        }
    }
}

TEST(FragmentSchedule, refuses_an_overlap_that_would_leave_two_fragments_pending) {
    EXPECT_NO_THROW((FragmentSchedule{30, 4, 7}.check())) << "each starts when the one before is applied";
    EXPECT_THROW((FragmentSchedule{30, 4, 8}.check()), CheckError);
    EXPECT_THROW((FragmentSchedule{3, 4, 0}.check()), CheckError);
    EXPECT_EQ(fitting_overlap(7, 30, 4), 6);
    EXPECT_EQ(fitting_overlap(5, 30, 4), 5);
    EXPECT_EQ(fitting_overlap(5, 4, 4), 0);
}

TEST(RoundSteps, the_last_round_takes_what_is_left_of_the_run) {
    const auto lengths = [](std::int64_t steps, std::int64_t total, std::int64_t fragments) {
        std::vector<std::int64_t> all;
        for (std::int64_t done = 0; done < total; done += all.back())
            all.push_back(round_steps(steps, total - done, fragments));
        return all;
    };
    EXPECT_EQ(lengths(30, 100, 1), (std::vector<std::int64_t>{30, 30, 30, 10}));
    EXPECT_EQ(lengths(30, 92, 4), (std::vector<std::int64_t>{30, 30, 32})) << "2 steps are no round of 4 fragments";
    EXPECT_EQ(lengths(1, 5, 2), (std::vector<std::int64_t>{2, 3}));
}

TEST(Warmup, averages_at_first_and_comes_to_what_the_run_asks_for) {
    const OuterStep full{.lr = 0.6, .momentum = 0.9};
    const OuterStep averaging{.lr = 1, .momentum = 0};
    OuterStep before = averaging;
    for (std::int64_t round = 0; round < 50; ++round) {
        const OuterStep now = warmed_up(full, 20, Round(round));
        EXPECT_GE(now.momentum, before.momentum) << round;
        EXPECT_LE(now.lr, before.lr) << round;
        EXPECT_EQ(now == averaging, round <= 20) << round;
        EXPECT_EQ(now == full, round >= 40) << round;
        before = now;
    }
    EXPECT_EQ(warmed_up(full, 20, Round(30)), (OuterStep{0.8, 0.45}));
    EXPECT_EQ(warmed_up(full, 0, Round(0)), full);
}

TEST(Attempt, is_direct_for_two_members_and_has_owners_from_three) {
    RoundPlan plan;
    plan.sites = {{.site = site(0)}, {.site = site(1)}};
    plan.fragments = {{FragmentId(0), 100, 16, Step(3)}};
    EXPECT_TRUE(first_attempt(plan, plan.fragments[0], false).direct);
    plan.sites.push_back({.site = site(2), .contributes = false});
    const AttemptPlan owned = first_attempt(plan, plan.fragments[0], false);
    EXPECT_FALSE(owned.direct);
    EXPECT_EQ(owned.owners.size(), 2U) << "a receiving member owns nothing";
    EXPECT_EQ(owned.owner_of(6), site(1));
    EXPECT_EQ(plan.fragments[0].chunk_size(6), 4);
}

// The worker is a step ahead of what the state machine has heard of when the run ends in the middle of a round.
TEST(Site, ends_with_a_checkpoint_of_the_step_that_was_under_way) {
    const SiteInfo self{site(0), "east", Incarnation(7), ""};
    SiteState state({.run_id = "run", .self = self, .hello = {}});
    const auto asked = [&](const SiteEvent& event) {
        std::string names;
        for (const auto& decision : state.handle(event, TimePoint{})) {
            if (std::holds_alternative<site_action::LoadState>(decision.action)) names += "load ";
            if (std::holds_alternative<site_action::StartRound>(decision.action)) names += "train ";
            if (std::holds_alternative<site_action::WriteCheckpoint>(decision.action)) names += "checkpoint ";
            if (std::holds_alternative<site_action::Stop>(decision.action)) names += "stop ";
        }
        return names;
    };
    View view{.run_id = "run", .term = Term(1), .version = 1};
    view.sites = {{.info = self, .standing = Standing::active}};
    view.start = StartFrom{};
    EXPECT_EQ(asked(site_event::ViewReceived{view}), "load ");
    asked(site_event::StateLoaded{.round = Round(0), .step = Step(0)});
    RoundPlan plan{.run_id = "run", .term = Term(1)};
    plan.sites = {{.site = self.id,
                   .incarnation = self.incarnation,
                   .inner_steps = 5,
                   .weight = 5,
                   .blocks = {{0, 0, 5}}}};
    plan.fragments = {{.elements = 10, .chunk_elements = 10, .start_step = Step(5)}};
    view.plan = plan;
    view.state_before = plan.state_before;
    view.version = 2;
    EXPECT_EQ(asked(site_event::ViewReceived{view}), "train ");
    asked(site_event::StepDone{Step(1)});
    view.ending = Ending{.exit_code = 1, .checkpoint = true, .reason = "too few sites"};
    view.version = 3;
    EXPECT_EQ(asked(site_event::ViewReceived{view}), "checkpoint ");
    asked(site_event::StepDone{Step(2)});
    EXPECT_EQ(asked(site_event::CheckpointWritten{Step(2)}), "stop ");
}

// Two sites share the held-out windows; neither ends before it has the sum.
TEST(Site, stays_until_every_share_of_the_last_evaluation_is_there) {
    const SiteInfo self{site(1), "west", Incarnation(7), ""};
    SiteState state({.run_id = "run", .self = self, .hello = {}});
    std::optional<site_action::Evaluate> part;
    const auto asked = [&](const SiteEvent& event) {
        std::string names;
        for (const auto& decision : state.handle(event, TimePoint{})) {
            if (const auto* evaluate = std::get_if<site_action::Evaluate>(&decision.action)) part = *evaluate;
            if (std::holds_alternative<site_action::ApplyCommit>(decision.action)) names += "apply ";
            if (std::holds_alternative<site_action::Evaluate>(decision.action)) names += "evaluate ";
            if (std::holds_alternative<site_action::TakeEvaluation>(decision.action)) names += "total ";
            if (std::holds_alternative<site_action::WriteCheckpoint>(decision.action)) names += "checkpoint ";
            if (std::holds_alternative<site_action::Stop>(decision.action)) names += "stop ";
        }
        return names;
    };
    View view{.run_id = "run", .term = Term(1), .version = 1};
    view.sites = {{.info = {site(0), "east", Incarnation(3), ""}, .standing = Standing::active},
                  {.info = self, .standing = Standing::active}};
    view.start = StartFrom{};
    asked(site_event::ViewReceived{view});
    asked(site_event::StateLoaded{.round = Round(0), .step = Step(0)});
    RoundPlan plan{.run_id = "run", .term = Term(1)};
    plan.sites = {{.site = site(0), .incarnation = Incarnation(3), .inner_steps = 5, .weight = 5},
                  {.site = self.id, .incarnation = self.incarnation, .inner_steps = 5, .weight = 5}};
    plan.fragments = {{.elements = 10, .chunk_elements = 10, .start_step = Step(5)}};
    plan.evaluate = true;
    plan.checkpoint_steps = {Step(5)};
    plan.stop_step = Step(5);
    view.plan = plan;
    view.state_before = plan.state_before;
    view.attempts = {first_attempt(plan, plan.fragments[0], true)};
    view.version = 2;
    asked(site_event::ViewReceived{view});
    asked(site_event::ContributionDeclared{FragmentId(0), {}});
    asked(site_event::ContributionEncoded{FragmentId(0), 0, PacketDigest{1, 1}});
    asked(site_event::PacketArrived{
        {Leg::contribution, Round(0), FragmentId(0), Attempt(0), site(0), 0}, site(0), PacketDigest{2, 2}});
    const std::optional<Hash128> held = state.report().fragments.at(0).held;
    ASSERT_TRUE(held);
    const AttemptPlan& attempt = view.attempts[0];
    view.commits = {{.round = Round(0),
                     .direct = true,
                     .contributors = attempt.contributors,
                     .members = attempt.members,
                     .state_before = plan.state_before,
                     .chunks = 1,
                     .hash = *held,
                     .last_step = Step(5)}};
    view.round = Round(1);
    view.plan.reset();
    view.attempts.clear();
    view.state_before = state_after(plan.state_before, view.commits);
    view.ending = Ending{.exit_code = 0, .checkpoint = true, .reason = "all steps are done"};
    view.version = 3;
    EXPECT_EQ(asked(site_event::ViewReceived{view}), "apply ");
    EXPECT_EQ(asked(site_event::CommitApplied{Round(0)}), "evaluate ");
    EXPECT_EQ(part->share, 1);
    EXPECT_EQ(part->shares, 2);
    const std::uint64_t progress = state.report().progress;
    EXPECT_EQ(asked(site_event::WindowsEvaluated{}), "");
    EXPECT_GT(state.report().progress, progress) << "a long evaluation is no silence";
    EXPECT_EQ(asked(site_event::Evaluated{{Round(0), 3.0, 2}}), "") << "the other's share is missing";
    EXPECT_EQ(state.report().evaluation, (Evaluation{Round(0), 3.0, 2}));
    view.evaluation = Evaluation{Round(0), 7.0, 4};
    view.version = 4;
    EXPECT_EQ(asked(site_event::ViewReceived{view}), "total checkpoint ");
    EXPECT_EQ(asked(site_event::CheckpointWritten{Step(5)}), "stop ");
}

TEST(Site, whose_name_another_process_has_begins_when_that_one_is_gone) {
    const SiteInfo self{site(1), "west", Incarnation(7), ""};
    SiteState state({.run_id = "run", .self = self, .hello = {}});
    const auto has_begun = [&](const View& view) {
        return std::ranges::any_of(state.handle(site_event::ViewReceived{view}, TimePoint{}), [](const auto& decision) {
            return std::holds_alternative<site_action::LoadState>(decision.action);
        });
    };
    View view{.run_id = "run", .term = Term(1), .version = 1};
    view.sites = {{.info = {self.id, self.name, Incarnation(6), ""}, .standing = Standing::active}};
    view.start = StartFrom{};
    EXPECT_FALSE(has_begun(view));
    view.sites[0].standing = Standing::lost;
    view.version = 2;
    EXPECT_TRUE(has_begun(view));
}

TEST(Site, that_no_coordinator_has_answered_leaves_at_once_when_asked_to) {
    SiteState state({.run_id = "run", .self = {site(1), "west", Incarnation(7), ""}, .hello = {}});
    state.handle(site_event::LeaveRequested{}, TimePoint{});
    const auto decisions = state.handle(site_event::Tick{}, TimePoint{});
    EXPECT_TRUE(std::ranges::any_of(decisions, [](const auto& decision) {
        return std::holds_alternative<site_action::Stop>(decision.action);
    }));
}

TEST(Site, whose_name_another_process_has_leaves_at_once_when_asked_to) {
    const SiteInfo self{site(1), "west", Incarnation(7), ""};
    SiteState state({.run_id = "run", .self = self, .hello = {}});
    View view{.run_id = "run", .term = Term(1), .version = 1};
    view.sites = {{.info = {self.id, self.name, Incarnation(6), ""}, .standing = Standing::active}};
    state.handle(site_event::ViewReceived{view}, TimePoint{});
    state.handle(site_event::LeaveRequested{}, TimePoint{});
    const auto decisions = state.handle(site_event::Tick{}, TimePoint{});
    EXPECT_TRUE(std::ranges::any_of(decisions, [](const auto& decision) {
        return std::holds_alternative<site_action::Stop>(decision.action);
    }));
}

TEST(Numbers, left_to_the_tuner_go_on_where_the_last_plan_was_after_a_restart) {
    CoordinatorOptions options;
    options.run_id = "run";
    options.site_names = {"north"};
    options.numbers.automatic_inner_steps = true;
    options.numbers.inner_steps = 10;
    options.numbers.total_steps = 1000;
    RoundRecord round;
    round.plan.run_id = "run";
    round.plan.sites = {{site(0), Incarnation(1), true, 28, 28, {{0, 0, 28}}}};
    round.plan.fragments = {{FragmentId(0), 100, 100, Step(28)}};
    round.attempts = {first_attempt(round.plan, round.plan.fragments[0], false)};
    CoordinatorRecord stored;
    stored.rounds[Round(0)] = round;
    CoordinatorState state(options, stored);
    state.handle(coordinator_event::Started{}, TimePoint{});
    EXPECT_EQ(state.numbers().inner_steps, 28);
}

TEST(CommitHash, depends_on_contributors_weights_and_digests) {
    AttemptPlan attempt;
    attempt.contributors = {{site(0), 1}, {site(1), 1}};
    const std::vector<PacketDigest> digests{{1, 1}, {2, 2}};
    const Hash128 hash = commit_hash({}, attempt, digests);
    EXPECT_NE(commit_hash({0, 1}, attempt, digests), hash);
    EXPECT_NE(commit_hash({}, attempt, {{2, 2}, {1, 1}}), hash);
    attempt.contributors[1].weight = 2;
    EXPECT_NE(commit_hash({}, attempt, digests), hash);
}

}  // namespace
}  // namespace atl
