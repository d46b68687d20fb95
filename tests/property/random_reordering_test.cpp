// Random legal orders of steps, strands among them: the checker refuses none, memory can be placed, and no delays of
// ops and links, in any mode of execution, make ranks wait for ever. And the orders are as random as they claim.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "program/checker.h"
#include "program/text.h"
#include "program/virtual_executor.h"
#include "support/pipeline_step.h"
#include "support/random_program.h"
#include "support/random_reordering.h"

namespace atl {
namespace {

constexpr std::uint64_t kSeeds = 260;

// Some schedule on some mesh, in some other order.
std::vector<Program> random_programs(std::uint64_t seed) {
    test::RandomChoice random(seed);
    ScheduleOptions options;
    options.kind = static_cast<ScheduleKind>(random.below(static_cast<int>(ScheduleKind::strands) + 1));
    options.ranks = static_cast<std::int32_t>(1 + random.below(4));
    const std::vector<std::int32_t> counts = {options.ranks, 2 * options.ranks, 2 * options.ranks + 1};
    options.micro_batches = random.any(counts);
    const auto table = make_schedule_table(options);
    const auto steps =
        test::make_pipeline_steps({.pipeline = table.pipeline,
                                   .layers = table.pipeline.stages() + 1,
                                   .micro_batches = options.micro_batches,
                                   .tensor_ranks = static_cast<std::int32_t>(1 + random.below(2)),
                                   .data_ranks = static_cast<std::int32_t>(1 + random.below(2))});
    return test::random_reordering(test::expand_all(steps, table), seed);
}

TEST(RandomReordering, is_never_refused_and_its_memory_can_be_placed) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE(seed);
        auto programs = random_programs(seed);
        const auto problems = check_programs(programs);
        ASSERT_TRUE(problems.empty()) << problems.front();
        if (seed % 4 != 0) continue;  // placing takes longest
        for (auto& program : programs) {
            const auto collisions = check_placement(program, place(program));
            ASSERT_TRUE(collisions.empty()) << collisions.front();
        }
    }
}

TEST(RandomReordering, random_delays_never_make_ranks_wait_for_ever) {
    int runs = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        SCOPED_TRACE(seed);
        const auto programs = random_programs(seed);
        test::RandomChoice random(seed + 1'000'000);
        for (const auto mode :
             {ExecutionMode::event, ExecutionMode::event, ExecutionMode::barrier, ExecutionMode::serial}) {
            std::vector<std::vector<double>> seconds;
            double longest_rank = 0;
            for (const auto& program : programs) {
                auto& mine = seconds.emplace_back();
                double compute = 0;
                for (const auto& op : program.ops) {
                    mine.push_back(1e-3 * static_cast<double>(random.below(random.one_in(10) ? 21 : 3)));
                    if (op.resource == Resource::compute) compute += mine.back();
                }
                longest_rank = std::max(longest_rank, compute);
            }
            // A deadlock fails a check.
            ASSERT_GE(execute_virtually(programs, seconds, mode).step_seconds, longest_rank * (1 - 1e-9));
            ++runs;
        }
    }
    EXPECT_GE(runs, 1000);
}

// Two micro-batches are mixed if each has an op between two of the other's.
bool mixes_micro_batches(const Program& program) {
    std::map<std::int32_t, std::pair<OpId, OpId>> ranges;
    for (const auto& op : program.ops)
        if (op.micro_batch >= 0)
            ranges.try_emplace(op.micro_batch, op.id, op.id).first->second.second = op.id;
    for (const auto& [k, range] : ranges)
        for (const auto& [other, others] : ranges)
            if (k != other && range.first < others.first && others.first < range.second) return true;
    return false;
}

TEST(RandomReordering, gives_many_orders_and_mixes_micro_batches) {
    const auto table =
        make_schedule_table({.kind = ScheduleKind::one_f_one_b, .ranks = 2, .micro_batches = 4});
    const auto programs = test::expand_all(
        test::make_pipeline_steps({.pipeline = table.pipeline, .micro_batches = 4, .tensor_ranks = 2}),
        table);
    std::set<std::string> orders;
    int mixed = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto other = test::random_reordering(programs, seed);
        orders.insert(print(other.front()));
        mixed += mixes_micro_batches(other.front());
        ASSERT_EQ(other.front().ops.size(), programs.front().ops.size());
        // The same seed gives the same programs.
        ASSERT_EQ(other, test::random_reordering(programs, seed));
    }
    EXPECT_EQ(orders.size(), 40u);
    EXPECT_GT(mixed, 20);
}

}  // namespace
}  // namespace atl
