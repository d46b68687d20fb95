// A table and two ranks' programs of every schedule, so that no change to generators or expansion goes unnoticed.
#include <gtest/gtest.h>

#include "program/text.h"
#include "support/golden_text.h"
#include "support/pipeline_step.h"

namespace atl {
namespace {

TEST(GoldenSchedule, of_every_kind_on_two_ranks) {
    for (int kind = 0; kind <= static_cast<int>(ScheduleKind::strands); ++kind) {
        const ScheduleOptions options{static_cast<ScheduleKind>(kind), 2, 3};
        const auto table = make_schedule_table(options);
        const auto steps = test::make_pipeline_steps({.pipeline = table.pipeline,
                                                      .layers = table.pipeline.stages(),
                                                      .micro_batches = 3,
                                                      .tokens = 2,
                                                      .hidden = 2});
        auto text = print(table);
        for (const auto& program : test::expand_all(steps, table)) text += print(program);
        test::expect_golden_text(fmt::format("schedules/{}.program", name(options.kind)), text);
    }
}

}  // namespace
}  // namespace atl
