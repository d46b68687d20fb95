// Laws of schedule tables, over every kind, 1 to 8 ranks and 1 to 32 micro-batches: each table is legal, its text form
// loses nothing, and its step time and memory are what the closed forms say, to the last bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "program/schedule_formulas.h"
#include "support/random_program.h"
#include "support/schedules.h"

namespace atl {
namespace {

using test::describe;
using test::for_each_schedule;

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

}  // namespace
}  // namespace atl
