// A model spread over ranks computes what one rank computes: loss, every logical gradient, the norm and, after three
// clipped steps, every parameter and moment, for each degree and mix, in fp64 to 1e-10 and in fp32 to 1e-5. Replicas
// hold the same bits, and no rank touches a byte more than its placement says.
#include <gtest/gtest.h>

#include "support/parallel_cases.h"
#include "support/rank_team.h"

namespace atl {
namespace {

using test::LogicalTensors;
using test::RankTeam;

struct Outcome {
    double evaluated = 0;
    double loss = 0;
    double norm2 = 0;
    LogicalTensors gradients;   // of the first step
    LogicalTensors parameters;  // after the last one
    LogicalTensors moments;
};

RankTeam make_team(const ModelShape& shape, const ParallelShape& parallel, DType dtype,
                   std::int32_t micro_batches) {
    test::RankTeamOptions options;
    options.shape = shape;
    options.step_micro_batches = micro_batches;
    options.training.sequences = 1;
    options.training.dtype = dtype;
    options.training.parallel = parallel;
    options.training.bucket_bytes = 4'000;
    // The bits are those of any other mode, with a thread a rank instead of seven.
    options.executor.mode = ExecutionMode::serial;
    // Epsilon far above the rounding of gradients that vanish: Adam would blow it up.
    options.training.optimizer = AdamwAttributes{.epsilon = 1e-3, .weight_decay = 0.1, .grad_clip = 0.3};
    return RankTeam(options);
}

Outcome run(RankTeam& team, const ModelShape& shape) {
    Outcome outcome;
    team.set_parameters(test::random_parameters(shape));
    team.step(0, 0.01);
    outcome.loss = team.loss();
    outcome.norm2 = team.norm2();
    outcome.gradients = team.gradients();
    team.step(1, 0.01);
    team.step(2, 0.01);
    outcome.evaluated = team.evaluate(3);
    outcome.parameters = team.parameters();
    outcome.moments = team.moments();
    return outcome;
}

void expect_equal(RankTeam& team, const Outcome& outcome, const Outcome& expected, double tolerance) {
    EXPECT_NEAR(outcome.evaluated / expected.evaluated, 1, tolerance);
    EXPECT_NEAR(outcome.loss / expected.loss, 1, tolerance);
    EXPECT_NEAR(outcome.norm2 / expected.norm2, 1, tolerance);
    EXPECT_LE(test::largest_relative_difference(outcome.gradients, expected.gradients), tolerance);
    EXPECT_LE(test::largest_relative_difference(outcome.parameters, expected.parameters), tolerance);
    EXPECT_LE(test::largest_relative_difference(outcome.moments, expected.moments), tolerance);
    for (std::int32_t rank = 0; rank < team.ranks(); ++rank) {
        EXPECT_EQ(team.untouched_bytes(rank), 0) << "rank " << rank;
        EXPECT_EQ(team.rank(rank).executor.allocations().count, 0) << "rank " << rank;
    }
}

void expect_as_on_one_rank(const ModelShape& shape, const std::vector<ParallelShape>& parallel_shapes,
                           DType dtype, std::int32_t micro_batches = 4) {
    auto single = make_team(shape, {}, dtype, micro_batches);
    const auto expected = run(single, shape);
    for (const auto& parallel : parallel_shapes) {
        SCOPED_TRACE(test::to_string(parallel));
        auto team = make_team(shape, parallel, dtype, micro_batches);
        expect_equal(team, run(team, shape), expected, dtype == DType::f64 ? 1e-10 : 1e-5);
    }
}

TEST(ParallelNumbers, of_a_llama_whose_key_heads_are_fewer_than_ranks_are_those_of_one_rank) {
    expect_as_on_one_rank(test::odd_llama(), test::parallel_shapes(), DType::f64);
    expect_as_on_one_rank(test::odd_llama(), test::parallel_shapes(), DType::f32);
}

TEST(ParallelNumbers, of_a_llama_with_tied_ends_are_those_of_one_rank) {
    expect_as_on_one_rank(test::odd_llama(true), test::parallel_shapes(), DType::f64);
}

TEST(ParallelNumbers, of_a_gpt2_are_those_of_one_rank) {
    expect_as_on_one_rank(test::odd_gpt2(), test::parallel_shapes(), DType::f64);
    expect_as_on_one_rank(test::odd_gpt2(), test::parallel_shapes(), DType::f32);
}

TEST(ParallelNumbers, of_matrices_with_fewer_rows_than_holders_are_those_of_one_rank) {
    // The four rows of a key head are updated by six ranks.
    expect_as_on_one_rank(test::odd_llama(), {{.tp = 4, .dp = 3, .zero = true}}, DType::f64, 3);
}

}  // namespace
}  // namespace atl
