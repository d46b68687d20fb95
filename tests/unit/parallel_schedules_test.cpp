// Real models under every pipeline schedule: loss, norm, parameters and moments after three steps have the bits of
// the serial schedule with the same layout, in every mode of the executor, with tied ends and with cut layers. Memory
// is as predicted on every rank.
#include <gtest/gtest.h>

#include <functional>

#include "support/parallel_cases.h"
#include "support/rank_team.h"

namespace atl {
namespace {

struct Outcome {
    double loss = 0;
    double norm2 = 0;
    test::LogicalTensors parameters;
    test::LogicalTensors moments;
};

Outcome run(const ModelShape& shape, const ParallelShape& parallel, std::int32_t micro_batches,
            const std::function<Program(const StepOps&)>& schedule, ExecutionMode mode) {
    test::RankTeamOptions options;
    options.shape = shape;
    options.step_micro_batches = micro_batches * parallel.dp;
    options.schedule = schedule;
    options.training.parallel = parallel;
    options.training.bucket_bytes = 4'000;
    options.training.optimizer = AdamwAttributes{.grad_clip = 0.3};
    options.executor.mode = mode;
    test::RankTeam team(options);
    team.set_parameters(test::random_parameters(shape));
    for (int step = 0; step < 3; ++step) team.step(step, 0.01);
    for (std::int32_t rank = 0; rank < team.ranks(); ++rank)
        EXPECT_EQ(team.untouched_bytes(rank), 0) << "rank " << rank;
    return {team.loss(), team.norm2(), team.parameters(), team.moments()};
}

void expect_bits_of_serial(const ModelShape& shape, const ParallelShape& parallel,
                           const ScheduleOptions& schedule) {
    const auto table = make_schedule_table(schedule);
    ASSERT_EQ(table.pipeline, parallel.pipeline());
    const auto expected =
        run(shape, parallel, schedule.micro_batches, serial_schedule, ExecutionMode::serial);
    for (const auto mode : {ExecutionMode::event, ExecutionMode::barrier, ExecutionMode::serial}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} micro-batches, mode {}", test::to_string(parallel),
                                 name(schedule.kind), schedule.micro_batches, static_cast<int>(mode)));
        const auto outcome = run(
            shape, parallel, schedule.micro_batches, [&](const StepOps& step) { return expand(step, table); },
            mode);
        EXPECT_EQ(outcome.loss, expected.loss);
        EXPECT_EQ(outcome.norm2, expected.norm2);
        EXPECT_EQ(outcome.parameters, expected.parameters);
        EXPECT_EQ(outcome.moments, expected.moments);
    }
}

TEST(ParallelSchedules, of_one_stage_a_rank_give_the_bits_of_the_serial_one) {
    for (const auto kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble,
                            ScheduleKind::zero_bubble_wide})
        expect_bits_of_serial(test::odd_gpt2(), {.pp = 2}, {.kind = kind, .ranks = 2, .micro_batches = 5});
    expect_bits_of_serial(test::odd_llama(), {.tp = 2, .pp = 2},
                          {.kind = ScheduleKind::one_f_one_b, .ranks = 2, .micro_batches = 4});
    expect_bits_of_serial(test::odd_gpt2(), {.pp = 2, .dp = 2, .zero = true},
                          {.kind = ScheduleKind::one_f_one_b, .ranks = 2, .micro_batches = 3});
    expect_bits_of_serial(test::odd_llama(), {.pp = 4},
                          {.kind = ScheduleKind::zero_bubble, .ranks = 4, .micro_batches = 9});
}

TEST(ParallelSchedules, of_several_stages_a_rank_give_the_bits_of_the_serial_one) {
    expect_bits_of_serial(test::odd_llama(true), {.pp = 2, .chunks = 2},
                          {.kind = ScheduleKind::interleaved, .ranks = 2, .micro_batches = 4});
    const ParallelShape fold{.pp = 2, .chunks = 2, .placement = StagePlacement::fold};
    for (const auto kind : {ScheduleKind::dualpipev, ScheduleKind::strands})
        for (const auto& shape : {test::odd_llama(true), test::odd_gpt2()})
            expect_bits_of_serial(shape, fold, {.kind = kind, .ranks = 2, .micro_batches = 5});
    auto cut = fold;
    cut.tp = 2;
    expect_bits_of_serial(test::odd_llama(true), cut,
                          {.kind = ScheduleKind::strands, .ranks = 2, .micro_batches = 4});
}

TEST(ParallelSchedules, strands_on_one_stage_give_the_bits_of_the_serial_one) {
    for (const auto& shape : {test::odd_llama(), test::odd_gpt2()})
        expect_bits_of_serial(shape, {.tp = 2},
                              {.kind = ScheduleKind::strands, .ranks = 1, .micro_batches = 4});
}

}  // namespace
}  // namespace atl
