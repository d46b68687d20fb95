// Pictures and traces of steps: every op is in them once, at its time, under its name.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "program/schedule_comparison.h"
#include "program/trace.h"
#include "support/pipeline_step.h"

namespace atl {
namespace {

int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

struct SmallStep {
    std::vector<Program> programs;
    std::vector<StepTiming> timings;
};

// Two pipeline ranks; the second timing takes twice as long.
SmallStep small_step() {
    const auto table = make_schedule_table({.kind = ScheduleKind::strands, .ranks = 2, .micro_batches = 4});
    SmallStep step;
    step.programs =
        test::expand_all(test::make_pipeline_steps({.pipeline = table.pipeline, .micro_batches = 4}), table);
    for (const double seconds : {1e-3, 2e-3}) {
        std::vector<std::vector<double>> durations;
        for (const auto& program : step.programs) durations.emplace_back(program.ops.size(), seconds);
        step.timings.push_back(
            {seconds < 2e-3 ? "planned" : "measured", execute_virtually(step.programs, durations).ops});
    }
    return step;
}

TEST(Gantt, draws_each_op_once_per_timing_with_a_row_for_each_rank_and_resource) {
    const auto [programs, timings] = small_step();
    const auto gantt = make_gantt(programs, timings);
    std::size_t bars = 0, ops = 0;
    for (const auto& row : gantt.rows) bars += row.bars.size();
    for (const auto& program : programs) ops += program.ops.size();
    EXPECT_EQ(bars, 2 * ops);
    EXPECT_EQ(gantt.title, "planned, then measured");
    // compute, link_inter, send and receive of two ranks and two timings.
    EXPECT_EQ(gantt.rows.size(), 16u);
    EXPECT_EQ(gantt.rows.front().label, "planned rank 0 compute");
    EXPECT_EQ(gantt.rows.back().label, "measured rank 1 receive");

    const auto svg = to_svg(gantt);
    EXPECT_EQ(count(svg, "<title>"), static_cast<int>(bars));
    EXPECT_EQ(count(svg, "<title>op 0 embedding (micro-batch 0), 0.000 to 1.000 ms</title>"), 1);
    EXPECT_EQ(count(svg, "<title>op 0 embedding (micro-batch 0), 0.000 to 2.000 ms</title>"), 1);
    EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    EXPECT_EQ(count(svg, "<rect "), count(svg, "</rect>") + 7);  // background and legend close themselves
}

TEST(Gantt, of_a_table_shows_both_strands) {
    const auto table = make_schedule_table({.kind = ScheduleKind::strands, .micro_batches = 3});
    const auto gantt = make_gantt(table, evaluate(table, {.pair_gain = 2}));
    ASSERT_EQ(gantt.rows.size(), 2u);
    EXPECT_EQ(gantt.rows[0].bars.size(), 4u);
    EXPECT_EQ(gantt.rows[1].bars.size(), 2u);
    EXPECT_EQ(gantt.rows[1].bars[0].label, "B0.0");
    EXPECT_EQ(gantt.rows[1].bars[0].tooltip, "(F0.1|B0.0), 1000.000 to 2500.000 ms");
    EXPECT_EQ(gantt.title, "1 ranks, 3 micro-batches, bubble 0.0 %");
}

TEST(Gantt, escapes_what_markup_would_misread) {
    const Gantt gantt{"a < b & c", {{"row", {{0, 1, BarKind::forward, 0, "x", "<x>"}}}}};
    const auto svg = to_svg(gantt);
    EXPECT_EQ(count(svg, "a &lt; b &amp; c"), 1);
    EXPECT_EQ(count(svg, "<title>&lt;x&gt;</title>"), 1);
    EXPECT_EQ(count(to_svg({"empty", {}}), "empty"), 1);
}

TEST(Trace, is_json_with_a_slice_per_op_and_an_arrow_per_message) {
    const auto [programs, timings] = small_step();
    const auto trace = nlohmann::json::parse(chrome_trace(programs, timings));
    std::map<std::string, int> phases;
    std::map<std::string, int> arrows;
    for (const auto& event : trace.at("traceEvents")) {
        ++phases[event.at("ph")];
        if (event.at("ph") == "s") ++arrows[event.at("id")];
        if (event.at("ph") == "f") --arrows[event.at("id")];
    }
    std::size_t ops = 0;
    for (const auto& program : programs) ops += program.ops.size();
    EXPECT_EQ(phases["X"], static_cast<int>(2 * ops));
    EXPECT_EQ(phases["s"], 2 * 2 * 2 * 4);  // two timings, two boundaries, both ways, four micro-batches
    for (const auto& [id, open] : arrows) EXPECT_EQ(open, 0) << id;
    const auto& first = *std::ranges::find_if(trace.at("traceEvents"),
                                              [](const auto& event) { return event.at("ph") == "X"; });
    EXPECT_EQ(first.at("name"), "embedding");
    EXPECT_EQ(first.at("dur"), 1000.0);
    EXPECT_EQ(first.at("args").at("micro_batch"), 0);
}

TEST(Trace, refuses_times_of_other_programs) {
    auto [programs, timings] = small_step();
    timings[1].ops[0].pop_back();
    EXPECT_THROW(chrome_trace(programs, timings), CheckError);
    EXPECT_THROW(make_gantt(programs, timings), CheckError);
}

// Eight milliseconds forward, eight and eight backward, of what a rank holds; four ranks, eight micro-batches.
TEST(ScheduleComparison, prints_time_bubble_and_memory_of_schedules_beside_each_other) {
    std::vector<ScheduleFigures> all;
    for (const auto kind : {ScheduleKind::one_f_one_b, ScheduleKind::interleaved, ScheduleKind::zero_bubble,
                            ScheduleKind::dualpipev, ScheduleKind::strands})
        all.push_back(
            measure({.kind = kind, .ranks = 4, .micro_batches = 8}, {.forward_seconds = 8e-3,
                                                                     .input_gradient_seconds = 8e-3,
                                                                     .weight_gradient_seconds = 8e-3,
                                                                     .pair_gain = 1.25}));
    EXPECT_EQ(print(all, "micro-batches"),
              "schedule            step ms   ratio  bubble %  peak micro-batches by rank\n"
              "1f1b                264.000    1.00      27.3  4 3 2 1\n"
              "interleaved         228.000    0.86      15.8  5.5 4.5 3.5 2.5\n"
              "zero_bubble         216.000    0.82      11.1  4 4 4 4\n"
              "dualpipev           204.000    0.77       5.9  4.5 4.5 4.5 4.5\n"
              "strands             189.600    0.72       7.0  4.5 4.5 4.5 4.5\n");
}

}  // namespace
}  // namespace atl
