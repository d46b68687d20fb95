// Programs of schedule tables, every kind's: the checker refuses none, and on the virtual executor their steps take what
// the closed forms say, to the last bit, for 1 to 8 ranks and 1 to 32 micro-batches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "program/checker.h"
#include "program/schedule_formulas.h"
#include "program/virtual_executor.h"
#include "support/pipeline_step.h"
#include "support/schedules.h"

namespace atl {
namespace {

using test::describe;

// One layer a stage; its product takes F, its gradients I and W, all else nothing.
std::vector<std::vector<double>> durations(const std::vector<Program>& programs, const WorkCosts& costs) {
    std::vector<std::vector<double>> seconds;
    for (const auto& program : programs) {
        auto& mine = seconds.emplace_back(program.ops.size(), 0);
        for (const auto& op : program.ops) {
            if (op.layer < 0) continue;
            auto& duration = mine[static_cast<std::size_t>(op.id.value())];
            if (op.kind == OpKind::linear) duration = costs.forward_seconds;
            if (op.kind == OpKind::linear_backward_input) duration = costs.input_gradient_seconds;
            if (op.kind == OpKind::linear_backward_weight) duration = costs.weight_gradient_seconds;
        }
    }
    return seconds;
}

TEST(ExpandProperty, programs_take_on_the_virtual_executor_what_the_formula_says) {
    const std::vector<WorkCosts> all_costs = {{8, 9, 7}, {10, 13, 12}, {4, 4, 4}};
    std::map<ScheduleKind, int> checked;
    std::map<std::array<std::int32_t, 4>, std::vector<StepOps>> steps_of;
    test::for_each_schedule([&](const ScheduleOptions& options) {
        if (options.kind == ScheduleKind::interleaved && options.chunks != 2) return;
        SCOPED_TRACE(describe(options));
        const auto& costs = all_costs[static_cast<std::size_t>(options.micro_batches) % 3];
        const auto expected = formula_step_seconds(options, costs);
        // Where strands are paired on several ranks, both end before the table's pair does.
        const bool is_bound = options.kind == ScheduleKind::strands && options.ranks > 1;
        if (!expected && !is_bound) return;
        ++checked[options.kind];
        const auto table = make_schedule_table(options);
        const auto& pipeline = table.pipeline;
        // Several schedules order the same ops.
        const auto [found, is_new] =
            steps_of.try_emplace({pipeline.ranks, pipeline.chunks,
                                  static_cast<std::int32_t>(pipeline.placement), options.micro_batches});
        if (is_new)
            found->second = test::make_pipeline_steps(
                {.pipeline = pipeline, .layers = pipeline.stages(), .micro_batches = options.micro_batches});
        const auto programs = test::expand_all(found->second, table);
        const double seconds = execute_virtually(programs, durations(programs, costs)).step_seconds;
        if (is_bound)
            ASSERT_LE(seconds, evaluate(table, costs).step_seconds);
        else
            ASSERT_EQ(seconds, *expected);
    });
    EXPECT_EQ(checked.size(), 8u);
    for (const auto& [kind, count] : checked) EXPECT_GE(count, 32) << name(kind);
}

// Every generator's programs, on small meshes, with as many micro-batches as ranks and more and fewer.
template <class Visit>
void for_each_small_step(Visit&& visit) {
    for (int kind = 0; kind <= static_cast<int>(ScheduleKind::strands); ++kind)
        for (const std::int32_t ranks : {1, 2, 3, 4, 7})
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
