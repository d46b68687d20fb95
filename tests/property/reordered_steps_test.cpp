// Real steps in random legal orders, strands among them, with random delays before their ops: whatever the order, the
// mode of execution and the timing, parameters and moments after three steps have the same bits.
#include <gtest/gtest.h>

#include "support/parallel_cases.h"
#include "support/random_program.h"
#include "support/random_reordering.h"
#include "support/rank_team.h"

namespace atl {
namespace {

struct Case {
    ModelShape shape;
    ParallelShape parallel;
    ScheduleOptions schedule;
};

struct Outcome {
    double loss = 0;
    double norm2 = 0;
    test::LogicalTensors parameters;
    test::LogicalTensors moments;
    bool operator==(const Outcome&) const = default;
};

test::RankTeamOptions options_of(const Case& c, std::function<Program(const StepOps&)> schedule) {
    test::RankTeamOptions options;
    options.shape = c.shape;
    options.step_micro_batches = c.schedule.micro_batches * c.parallel.dp;
    options.schedule = std::move(schedule);
    options.training.parallel = c.parallel;
    options.training.bucket_bytes = 2'000;
    options.training.optimizer = AdamwAttributes{.grad_clip = 0.3};
    return options;
}

Outcome run(test::RankTeam& team, const ModelShape& shape) {
    team.set_parameters(test::random_parameters(shape));
    for (int step = 0; step < 3; ++step) team.step(step, 0.01);
    return {team.loss(), team.norm2(), team.parameters(), team.moments()};
}

ModelShape small(ModelShape shape) {
    shape.layers = 2;
    shape.vocab = 31;
    return shape;
}

std::vector<Case> cases() {
    const auto llama = small(test::odd_llama(true)), gpt2 = small(test::odd_gpt2());
    const ParallelShape fold{
        .pp = 2, .chunks = 2, .placement = StagePlacement::fold, .stage_layers = {0, 1, 1, 0}};
    using enum ScheduleKind;
    return {{llama, {.tp = 2}, {.kind = strands, .ranks = 1, .micro_batches = 3}},
            {gpt2, {.pp = 2}, {.kind = zero_bubble, .ranks = 2, .micro_batches = 4}},
            {llama, {.pp = 2}, {.kind = one_f_one_b, .ranks = 2, .micro_batches = 2}},
            {llama, fold, {.kind = strands, .ranks = 2, .micro_batches = 5}},
            {gpt2, {.dp = 2, .zero = true}, {.kind = gpipe, .ranks = 1, .micro_batches = 3}},
            {llama, {.tp = 2, .pp = 2}, {.kind = gpipe, .ranks = 2, .micro_batches = 2}}};
}

TEST(ReorderedSteps, give_the_same_bits_in_every_order_and_mode) {
    int programs = 0;
    for (const auto& c : cases()) {
        const auto table = make_schedule_table(c.schedule);
        test::RankTeam team(options_of(c, [&](const StepOps& step) { return expand(step, table); }));
        const auto expected = run(team, c.shape);
        std::vector<Program> planned;
        for (std::int32_t rank = 0; rank < team.ranks(); ++rank) planned.push_back(team.rank(rank).program);
        for (std::uint64_t seed = 0; seed < 34; ++seed, ++programs) {
            SCOPED_TRACE(
                fmt::format("{}, {}, seed {}", test::to_string(c.parallel), name(c.schedule.kind), seed));
            const auto reordered = test::random_reordering(planned, seed);
            auto options = options_of(c, [&](const StepOps& step) {
                return reordered[static_cast<std::size_t>(step.program.rank.value())];
            });
            options.executor.mode = static_cast<ExecutionMode>(seed % 3);
            if (seed % 4 == 0) options.executor.delays = RandomDelays{seed, std::chrono::microseconds(50)};
            test::RankTeam other(options);
            ASSERT_EQ(run(other, c.shape) == expected, true);
        }
    }
    EXPECT_GE(programs, 200);
}

}  // namespace
}  // namespace atl
