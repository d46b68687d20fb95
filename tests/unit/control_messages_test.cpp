// Control messages and stored rounds as bytes: what goes in comes out, and nothing else gets in.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/random.h"
#include "rounds/attempt_plan.h"
#include "rounds/messages.h"

namespace atl {
namespace {

RoundPlan example_plan() {
    RoundPlan plan;
    plan.run_id = "example";
    plan.term = Term(3);
    plan.round = Round(7);
    plan.first_step = Step(350);
    plan.state_before = {11, 12};
    plan.first_attempt = Attempt(1);
    plan.sites = {{SiteId(0), Incarnation(0xffffffffffffffff), true, 5, 5, {{0, 17, 3}, {1, 0, 2}}},
                  {SiteId(2), Incarnation(5), true, 5, 5, {{1, 2, 5}}},
                  {SiteId(3), Incarnation(6), false, 0, 0, {}}};
    plan.fragments = {{FragmentId(0), 1000, 64, Step(355)}};
    plan.numbers.outer_lr = 0.7;
    plan.checkpoint_steps = {Step(352), Step(355)};
    plan.evaluate = true;
    plan.stop_step = Step(355);
    plan.reason = "because";
    return plan;
}

View example_view() {
    View view;
    view.run_id = "example";
    view.term = Term(3);
    view.version = 99;
    view.sites = {{{SiteId(0), "alpha", Incarnation(1), "127.0.0.1:4000"},
                   Standing::suspect,
                   Phase::holding,
                   Round(7),
                   3,
                   true,
                   "?"}};
    view.round = Round(7);
    view.state_before = Hash128{11, 12};
    view.start = StartFrom{StartFrom::Kind::checkpoint, Step(300), Round(6), {9, 9}, 2, "newest"};
    view.plan = example_plan();
    view.attempts = {first_attempt(*view.plan, view.plan->fragments[0], false)};
    Commit commit;
    commit.round = Round(6);
    commit.direct = true;
    commit.contributors = {{SiteId(0), 5}};
    commit.members = {SiteId(0), SiteId(2)};
    commit.chunks = 16;
    commit.hash = {0xfedcba9876543210, 1};
    commit.last_step = Step(350);
    commit.apply_step = Step(340);
    commit.fragments = 2;
    commit.numbers.outer_momentum = 0.5;
    view.commits = {commit};
    view.open_commits = {commit};
    view.evaluation = Evaluation{Round(5), 2.5, 640};
    view.ending = Ending{1, true, "over"};
    view.hello_known = true;
    return view;
}

Report example_report() {
    Report report;
    report.run_id = "example";
    report.site = {SiteId(2), "gamma", Incarnation(77), "10.0.0.1:1"};
    report.term = Term(3);
    report.version = 98;
    report.sequence = 12;
    report.phase = Phase::exchanging;
    report.round = Round(7);
    report.steps_done = Step(355);
    report.state_hash = {11, 12};
    report.progress = 4711;
    report.kept = {{Round(6), FragmentId(0)}, {Round(7), FragmentId(1)}};
    FragmentReport fragment;
    fragment.attempt = Attempt(1);
    fragment.contribution = ContributionFacts{true, {0.5, 1.25}};
    fragment.missing_contributions = {SiteId(0)};
    fragment.complaints = {{SiteId(0), ComplaintKind::missing}};
    fragment.least_norms = {{SiteId(0), 1.5}};
    fragment.held = Hash128{1, 2};
    report.fragments = {fragment};
    report.last_cost =
        RoundCost{Round(6), 50, 5.5, 6.25, 0.5, 4000, {{SiteId(0), 1000, 900, 1010, 910, 0.0502}}};
    report.evaluation = Evaluation{Round(6), 3.5, 320};
    report.hello = Hello{{{"train.steps", "7"}}, 100, {1000}, {{Step(300), Round(6), {9, 9}}}};
    return report;
}

TEST(ControlMessages, a_report_survives_the_wire) {
    EXPECT_EQ(decode_report(encode(example_report())), example_report());
}

TEST(ControlMessages, a_view_survives_the_wire) {
    EXPECT_EQ(decode_view(encode(example_view())), example_view());
}

TEST(ControlMessages, a_round_survives_the_database) {
    RoundRecord record;
    record.plan = example_plan();
    record.ledger.blocks_per_epoch = 20;
    record.ledger.next_epoch = 1;
    record.ledger.next_block = 7;
    record.ledger.returned = {{0, 3, 4}};
    record.ledger.leases[SiteId(0)] = {{0, 17, 3}, {1, 0, 2}};
    record.attempts = {first_attempt(record.plan, record.plan.fragments[0], false)};
    record.resent = {FragmentId(0)};
    EXPECT_EQ(decode_round_record(encode(record)), record);
    EXPECT_EQ(decode_round_plan(encode(record.plan)), record.plan);
    const RoundCost cost = *example_report().last_cost;
    EXPECT_EQ(decode_round_cost(encode(cost)), cost);
}

TEST(ControlMessages, of_another_kind_or_version_are_refused_by_name) {
    const auto refusal = [](const auto& decode) {
        try {
            decode();
        } catch (const CorruptDataError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    EXPECT_EQ(refusal([] { decode_view(encode(example_report())); }),
              "[control] a report came where a view belongs");
    EXPECT_NE(refusal([] { decode_report({}); }), "accepted");
    Report wrong = example_report();
    wrong.fragments[0].missing_contributions = {SiteId(2), SiteId(1)};
    EXPECT_EQ(refusal([&] { decode_report(encode(wrong)); }),
              "[control] report.fragments.missing_contributions is not a list of sites in order");
    wrong = example_report();
    wrong.fragments[0].contribution->tensor_norms[0] = -1;
    EXPECT_NE(refusal([&] { decode_report(encode(wrong)); }), "accepted");
    View hole = example_view();
    hole.attempts[0].owners[0].chunks -= 1;
    EXPECT_EQ(refusal([&] { decode_view(encode(hole)); }),
              "[control] view.attempts.owners leave a gap or overlap");
}

// Goal: no bytes make a decoder do anything but return a valid value or throw CorruptDataError.
TEST(ControlMessages, flipped_and_cut_bytes_never_crash_a_decoder) {
    const std::vector<std::byte> good = encode(example_view());
    const RandomStream random(2024, "control messages");
    std::uint64_t next = 0;
    int refused = 0;
    for (int trial = 0; trial < 5'000; ++trial) {
        std::vector<std::byte> bad = good;
        const std::uint64_t flips = 1 + random.below(next++, 4);
        for (std::uint64_t i = 0; i < flips; ++i) {
            const std::uint64_t at = random.below(next++, bad.size());
            bad[at] = std::byte(random.below(next++, 256));
        }
        if (random.below(next++, 4) == 0) bad.resize(random.below(next++, bad.size()));
        try {
            decode_view(bad);
        } catch (const CorruptDataError&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 2'500);
}

TEST(ControlMessages, a_finite_norm_must_be_finite_and_a_non_finite_one_may_not_be) {
    Report report = example_report();
    report.fragments[0].contribution = ContributionFacts{false, {std::numeric_limits<double>::infinity()}};
    EXPECT_EQ(decode_report(encode(report)), report);
    report.fragments[0].contribution->finite = true;
    EXPECT_THROW(decode_report(encode(report)), CorruptDataError);
}

}  // namespace
}  // namespace atl
