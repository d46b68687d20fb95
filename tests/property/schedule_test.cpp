// Laws of schedule tables, over every kind, 1 to 8 ranks and 1 to 32 micro-batches: each table is legal, its text form
// loses nothing, and its step time and memory are what the closed forms say, to the last bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "program/checker.h"
#include "program/schedule_formulas.h"
#include "support/pipeline_step.h"
#include "support/random_program.h"

namespace atl {
namespace {

constexpr std::int32_t kMostRanks = 8, kMostMicroBatches = 32;

// Every schedule of these sizes, the interleaved one with several numbers of chunks.
template <class Visit>
void for_each_schedule(Visit&& visit) {
    for (std::int32_t ranks = 1; ranks <= kMostRanks; ++ranks)
        for (std::int32_t m = 1; m <= kMostMicroBatches; ++m)
            for (int kind = 0; kind <= static_cast<int>(ScheduleKind::strands); ++kind) {
                ScheduleOptions options{static_cast<ScheduleKind>(kind), ranks, m};
                if (options.kind != ScheduleKind::interleaved) {
                    visit(options);
                    continue;
                }
                for (options.chunks = 1; options.chunks <= 4; ++options.chunks) visit(options);
            }
}

std::string describe(const ScheduleOptions& options) {
    return fmt::format("{}, {} ranks, {} micro-batches, {} chunks, memory {}", name(options.kind),
                       options.ranks, options.micro_batches, options.chunks, options.memory_micro_batches);
}

TEST(ScheduleProperty, every_table_is_legal_and_its_text_reads_back) {
    for_each_schedule([](const ScheduleOptions& options) {
        SCOPED_TRACE(describe(options));
        const auto table = make_schedule_table(options);
        const auto problems = check_table(table);
        ASSERT_TRUE(problems.empty()) << problems.front() << "\n" << print(table);
        ASSERT_EQ(parse_schedule_table(print(table)), table) << print(table);
    });
}

// Whole numbers, so that every sum is exact; pairs gain a power of two's part.
std::vector<WorkCosts> whole_costs() {
    std::vector<WorkCosts> all = {{1, 1, 1}, {1, 2, 2, 0, 0.5}, {8, 9, 7}};
    test::RandomChoice random(7);
    for (int i = 0; i < 20; ++i)
        all.push_back({static_cast<double>(8 * (10 + random.below(10))),
                       static_cast<double>(8 * (10 + random.below(12))),
                       static_cast<double>(8 * (8 + random.below(12))), 0, random.one_in(2) ? 1.0 : 2.0});
    return all;
}

TEST(ScheduleProperty, step_time_is_what_the_formula_says) {
    const auto costs = whole_costs();
    std::map<ScheduleKind, int> checked;
    for_each_schedule([&](const ScheduleOptions& options) {
        SCOPED_TRACE(describe(options));
        const auto table = make_schedule_table(options);
        for (const auto& cost : costs) {
            const auto expected = formula_step_seconds(options, cost);
            if (!expected) continue;
            ++checked[options.kind];
            ASSERT_EQ(evaluate(table, cost).step_seconds, *expected)
                << "F " << cost.forward_seconds << " I " << cost.input_gradient_seconds << " W "
                << cost.weight_gradient_seconds << " gain " << cost.pair_gain;
        }
    });
    EXPECT_EQ(checked.size(), 8u);
    for (const auto& [kind, count] : checked) EXPECT_GT(count, 1000) << name(kind);
}

TEST(ScheduleProperty, memory_is_what_the_formula_says) {
    for_each_schedule([](const ScheduleOptions& options) {
        SCOPED_TRACE(describe(options));
        const auto expected = formula_peak_pieces(options);
        if (expected) {
            ASSERT_EQ(peak_pieces(make_schedule_table(options)), *expected);
        }
    });
}

// Every generator's programs, on small meshes, with as many micro-batches as ranks and more and fewer.
template <class Visit>
void for_each_small_step(Visit&& visit) {
    for (int kind = 0; kind <= static_cast<int>(ScheduleKind::strands); ++kind)
        for (const std::int32_t ranks : {1, 2, 3, 4})
            for (const std::int32_t m : {1, ranks, 2 * ranks, 2 * ranks + 1})
                for (const std::int32_t budget : {0, ranks + 2}) {
                    ScheduleOptions options{static_cast<ScheduleKind>(kind), ranks, m};
                    if (budget > 0 && options.kind != ScheduleKind::strands) continue;
                    options.memory_micro_batches = budget;
                    const auto table = make_schedule_table(options);
                    const test::PipelineStepOptions step{.pipeline = table.pipeline,
                                                         .layers = 2 * table.pipeline.stages() + 1,
                                                         .micro_batches = m,
                                                         .tensor_ranks = 1 + kind % 2,
                                                         .data_ranks = ranks < 4 ? 2 : 1};
                    SCOPED_TRACE(describe(options));
                    visit(options, table, step);
                }
}

TEST(ExpandProperty, no_program_of_any_schedule_is_refused) {
    for_each_small_step(
        [](const ScheduleOptions&, const ScheduleTable& table, const test::PipelineStepOptions& step) {
            auto programs = test::expand_all(test::make_pipeline_steps(step), table);
            const auto problems = check_programs(programs);
            ASSERT_TRUE(problems.empty()) << problems.front() << "\n" << print(table);
            for (auto& program : programs) {
                const auto placement = place(program);
                const auto collisions = check_placement(program, placement);
                ASSERT_TRUE(collisions.empty()) << collisions.front();
            }
        });
}

}  // namespace
}  // namespace atl
