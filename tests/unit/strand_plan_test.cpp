// Plans of whole steps of a model: programs that the checker proves, predictions that the virtual executor keeps,
// memory within what is allowed, files that read back, and reasons for staying serial.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "core/error.h"
#include "model/training_program.h"
#include "program/checker.h"
#include "program/plan_drift.h"
#include "program/plan_strands.h"
#include "program/planner_ingredients.h"
#include "program/saved_activations.h"
#include "program/schedule.h"
#include "program/text.h"
#include "program/virtual_executor.h"
#include "support/small_models.h"

namespace atl {
namespace {

using testing::HasSubstr;

// Links at which about a third of a serial step is communication.
constexpr MachineRates kRates{.flops_per_second = 1e11,
                              .memory_bytes_per_second = 1e10,
                              .op_overhead_seconds = 1e-7,
                              .link_intra = {5e8, 1e-6},
                              .point_to_point = {5e8, 1e-6}};

struct Steps {
    std::vector<StepOps> ranks;
    ScheduleTable table;
};

Steps steps_of(const ParallelShape& parallel, std::int32_t layers, std::int32_t micro_batches,
               std::int32_t memory_micro_batches = 0) {
    ModelShape shape = test::tiny_llama();
    shape.layers = layers;
    ParallelShape cut = parallel;
    const ScheduleOptions options{.kind = ScheduleKind::strands,
                                  .ranks = cut.pp,
                                  .micro_batches = micro_batches,
                                  .memory_micro_batches = memory_micro_batches};
    const auto pipeline = pipeline_of(options);
    cut.chunks = pipeline.chunks;
    cut.placement = pipeline.placement;
    Steps steps{.table = make_schedule_table(options)};
    for (std::int32_t rank = 0; rank < cut.ranks(); ++rank)
        steps.ranks.push_back(emit_training_step(shape, {.sequences = 1,
                                                         .micro_batches = micro_batches,
                                                         .rank = Rank(rank),
                                                         .parallel = cut,
                                                         .scratch_bytes = {}}));
    return steps;
}

StepCosts costs() {
    return costs_of(kRates, {.model = "tiny"});
}

std::vector<Program> programs_of(const Steps& steps, const StrandPlan& plan) {
    std::vector<Program> programs;
    for (const auto& rank : steps.ranks) programs.push_back(planned_program(rank, steps.table, plan));
    return programs;
}

double seconds_of(const std::vector<Program>& programs, ExecutionMode mode) {
    std::vector<std::vector<double>> seconds;
    for (const auto& program : programs) seconds.push_back(predicted_seconds(program, kRates));
    return execute_virtually(programs, seconds, mode).step_seconds;
}

TEST(StrandPlan, makes_programs_that_the_checker_proves_and_that_take_as_long_as_predicted) {
    for (const auto& [parallel, memory] :
         {std::pair(ParallelShape{.tp = 2}, 0), std::pair(ParallelShape{.tp = 2}, 3),
          std::pair(ParallelShape{.tp = 2, .dp = 2}, 0), std::pair(ParallelShape{.tp = 2, .pp = 2}, 0),
          std::pair(ParallelShape{.pp = 2}, 4)}) {
        SCOPED_TRACE(
            fmt::format("tp {} pp {} dp {}, memory {}", parallel.tp, parallel.pp, parallel.dp, memory));
        const auto steps = steps_of(parallel, 5, 5, memory);
        const auto plan = plan_strands(steps.ranks, steps.table, costs());
        ASSERT_FALSE(plan.pairs.empty());
        auto forced = plan;
        forced.interleaves = true;  // whether or not it is worth it
        const auto programs = programs_of(steps, forced);
        const auto problems = check_programs(programs);
        ASSERT_TRUE(problems.empty()) << problems.front();
        for (auto program : programs) {
            const auto collisions = check_placement(program, place(program));
            ASSERT_TRUE(collisions.empty()) << collisions.front();
        }
        EXPECT_DOUBLE_EQ(seconds_of(programs, ExecutionMode::event), plan.predicted.event_seconds);
        EXPECT_DOUBLE_EQ(seconds_of(programs, ExecutionMode::barrier), plan.predicted.barrier_seconds);
        EXPECT_EQ(programs_of(steps, forced), programs) << "the same plan makes the same programs";
    }
}

TEST(StrandPlan, of_long_models_is_faster_than_alternating_segments_and_within_its_bounds) {
    const auto steps = steps_of({.tp = 2}, 13, 6);
    const auto plan = plan_strands(steps.ranks, steps.table, costs());
    ASSERT_TRUE(plan.interleaves) << plan.reason;
    const auto& predicted = plan.predicted;
    EXPECT_LE(predicted.event_seconds, predicted.barrier_seconds);
    EXPECT_LT(predicted.event_seconds, predicted.serial_seconds);
    EXPECT_GE(predicted.event_seconds, std::max(predicted.compute_seconds, predicted.communication_seconds));
    EXPECT_GT(predicted.hidden_share(), 0.5);
    EXPECT_THAT(plan.reason, HasSubstr("predicted to save"));
    std::vector<Program> alternating;
    for (const auto& rank : steps.ranks) alternating.push_back(expand(rank, steps.table));
    EXPECT_LT(predicted.event_seconds, seconds_of(alternating, ExecutionMode::event));
    const auto& pair = plan.pairs.front();
    EXPECT_LE(pair.seconds, pair.serial_seconds);
    EXPECT_GE(pair.seconds, pair.busiest_seconds);
    EXPECT_LE(pair.peak_bytes, pair.most_bytes);
}

TEST(StrandPlan, keeps_memory_within_a_layer_of_the_serial_step) {
    constexpr std::int32_t kLayers = 13;
    const auto steps = steps_of({.tp = 2}, kLayers, 6);
    const auto plan = plan_strands(steps.ranks, steps.table, costs());
    const auto placed = [&](const StrandPlan& which) {
        Program program = planned_program(steps.ranks.front(), steps.table, which);
        return place(program);
    };
    const auto serial = placed(serial_plan(""));
    const auto layer = serial.arena_bytes.at({Role::activation, Space::device}) / kLayers;
    EXPECT_LE(placed(plan).peak_bytes(),
              serial.peak_bytes() + std::max(serial.peak_bytes() * 3 / 100, layer));
}

TEST(SavedActivations, of_a_layer_are_what_its_forward_writes_and_a_backward_touches) {
    const Program program = parse_program(
        "program 1 rank 0\n"
        "value x input device f32 [8,4]\n"
        "value w parameter device f32 [4,4]\n"
        "value g gradient device f32 [4,4]\n"
        "value kept0 activation device f32 [8,4]\n"
        "value kept1 activation device f32 [8,4]\n"
        "value more1 activation device f32 [8,4]\n"
        "value gone activation device f32 [8,4]\n"
        "value d activation device f32 [8,4]\n"
        "op 0 linear x w -> kept0 layer=0 micro_batch=0\n"
        "op 1 linear kept0 w -> gone layer=0 micro_batch=0\n"
        "op 2 linear gone w -> kept1 layer=1 micro_batch=0\n"
        "op 3 linear kept1 w -> more1 layer=1 micro_batch=0\n"
        "op 4 linear_backward_input more1 w -> d layer=1 micro_batch=0\n"
        "op 5 linear_backward_weight d kept1 -> g layer=1 micro_batch=0 accumulate=false\n"
        "op 6 linear_backward_weight d kept0 -> g layer=0 micro_batch=0 accumulate=true\n");
    EXPECT_EQ(saved_layer_bytes({program}), 8 * 4 * 4) << "of layer 0; layer 1 keeps two";
}

TEST(StrandPlan, ingredients_add_up_and_end_above_the_bound) {
    const auto steps = steps_of({.tp = 2}, 8, 4);
    const auto ingredients = plan_ingredients(steps.ranks.front(), steps.table, costs());
    ASSERT_EQ(ingredients.size(), 8U);
    for (std::size_t i = 1; i < 6; ++i)
        EXPECT_LE(ingredients[i].seconds, ingredients[i - 1].seconds * (1 + 1e-9)) << ingredients[i].name;
    EXPECT_LT(ingredients[5].seconds, 0.9 * ingredients[0].seconds);
    EXPECT_GE(ingredients[5].seconds, ingredients.back().seconds);
}

TEST(StrandPlan, ingredients_are_plans_of_steps_that_the_checker_proves) {
    const auto steps = steps_of({.tp = 2}, 5, 4);
    const auto plans = ingredient_plans(steps.ranks, steps.table, costs());
    ASSERT_EQ(plans.size(), 7U);
    EXPECT_FALSE(plans.front().plan.interleaves);
    for (const auto& [name, mode, plan] : plans) {
        const auto programs = programs_of(steps, plan);
        EXPECT_TRUE(check_programs(programs).empty()) << name;
        EXPECT_DOUBLE_EQ(seconds_of(programs, mode), (IngredientPlan{name, mode, plan}.predicted_seconds()))
            << name;
    }
    EXPECT_LT(plans.back().predicted_seconds(), 0.9 * plans.front().predicted_seconds());
}

TEST(StrandPlan, candidates_are_different_plans_the_fastest_first) {
    const auto steps = steps_of({.tp = 2}, 5, 4);
    const auto plans = candidate_plans(steps.ranks, steps.table, costs(), 3);
    ASSERT_EQ(plans.size(), 3U);
    for (std::size_t i = 0; i < plans.size(); ++i) {
        EXPECT_TRUE(plans[i].interleaves);
        for (std::size_t j = 0; j < i; ++j) {
            EXPECT_NE(plans[i].hash(), plans[j].hash());
            EXPECT_GE(plans[i].predicted.event_seconds, plans[j].predicted.event_seconds);
        }
    }
    const auto single = steps_of({.tp = 2}, 2, 1);
    const auto none = candidate_plans(single.ranks, single.table, costs(), 3);
    ASSERT_EQ(none.size(), 1U);
    EXPECT_THAT(none.front().reason, HasSubstr("interleaving needs 2"));
}

TEST(StrandPlan, stays_serial_with_a_reason_where_interleaving_cannot_pay) {
    const auto single = steps_of({.tp = 2}, 2, 1);
    EXPECT_THAT(plan_strands(single.ranks, single.table, costs()).reason,
                HasSubstr("1 micro-batch(es), interleaving needs 2"));
    const auto few = steps_of({.pp = 2}, 4, 1);
    EXPECT_FALSE(plan_strands(few.ranks, few.table, costs()).interleaves);
    const auto alone = steps_of({}, 2, 4);
    const auto plan = plan_strands(alone.ranks, alone.table, costs());
    EXPECT_FALSE(plan.interleaves);
    EXPECT_THAT(plan.reason, HasSubstr("save 0.0 % of a step, less than 1 %"));
}

TEST(StrandPlan, serial_plans_run_one_piece_of_work_after_another) {
    const auto steps = steps_of({.tp = 2, .pp = 2}, 4, 4);
    const auto programs = programs_of(steps, serial_plan("a test"));
    const auto problems = check_programs(programs);
    ASSERT_TRUE(problems.empty()) << problems.front();
    for (const auto& op : programs.front().ops) ASSERT_EQ(op.strand, 0);
    const auto one_stage = steps_of({.tp = 2}, 2, 4);
    EXPECT_EQ(planned_program(one_stage.ranks[0], one_stage.table, serial_plan("a test")),
              serial_schedule(one_stage.ranks[0]));
}

TEST(StrandPlan, files_read_back_and_their_hash_follows_what_ranks_run) {
    const auto steps = steps_of({.tp = 2}, 3, 4);
    const auto plan = plan_strands(steps.ranks, steps.table, costs());
    EXPECT_EQ(strand_plan_from_json(to_json(plan), "plan.json"), plan);
    auto other = plan;
    other.reason = "another";
    EXPECT_EQ(other.hash(), plan.hash());
    std::swap(other.pairs[0].order[0], other.pairs[0].order[1]);
    EXPECT_NE(other.hash(), plan.hash());
    EXPECT_NE(serial_plan("").hash(), plan.hash());
}

std::string error_of(const std::string& text) {
    try {
        strand_plan_from_json(text, "plan.json");
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const auto at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST(StrandPlan, wrong_files_are_named_with_the_field_at_fault) {
    const StrandPlan plan{.interleaves = true,
                          .pairs = {{.first = {WorkKind::forward, 0, 0},
                                     .second = {WorkKind::backward, 0, 0},
                                     .first_ops = 3,
                                     .second_ops = 2,
                                     .order = {0, 3, 1, 2, 4}}}};
    const auto text = to_json(plan);
    EXPECT_THAT(text, HasSubstr("F0 B0 F1-2 B1"));
    EXPECT_THAT(error_of("{}"), HasSubstr("plan.json: plan_format is missing"));
    for (const auto* wrong :
         {"F0 B0 F1-2", "F0 B0 F1-2 B0", "F0 B0 F1-3 B1", "F0 X0 F1-2 B1", "F0, B0", "F2-1"})
        EXPECT_THAT(error_of(replaced(text, "F0 B0 F1-2 B1", wrong)), HasSubstr("not each op once")) << wrong;
    EXPECT_THAT(error_of(replaced(text, "F0 B0 F1-2 B1", "F0-2 B0-1")), HasSubstr("is not that of the plan"));
    EXPECT_THAT(error_of(replaced(text, "\"interleaves\": true", "\"interleaves\": 3")),
                HasSubstr("interleaves = 3 is of the wrong type"));
}

TEST(PlanDrift, is_told_by_the_median_of_fifty_steps_and_not_by_a_few_slow_ones) {
    PlanDrift drift(0.1);
    for (int step = 0; step < 200; ++step) ASSERT_EQ(drift.add_step(step % 3 == 0 ? 5.0 : 0.11), "") << step;
    for (int step = 0; step < 49; ++step) ASSERT_EQ(drift.add_step(0.12), "");
    EXPECT_EQ(drift.add_step(0.12), "50 steps took 0.12 s each, 0.1 s were expected");
    PlanDrift faster(0.1);
    for (int step = 0; step < 49; ++step) ASSERT_EQ(faster.add_step(0.08), "");
    EXPECT_NE(faster.add_step(0.08), "") << "a faster link deserves another plan too";
}

TEST(PlanDrift, without_an_expectation_measures_from_its_first_fifty_steps) {
    PlanDrift drift({});
    for (int step = 0; step < 150; ++step) ASSERT_EQ(drift.add_step(step < 50 ? 0.2 : 0.22), "");
    for (int step = 0; step < 49; ++step) ASSERT_EQ(drift.add_step(0.24), "");
    EXPECT_NE(drift.add_step(0.24), "");
}

TEST(StrandPlan, for_another_model_is_refused_by_name) {
    const auto plan = plan_strands(steps_of({.tp = 2}, 3, 4).ranks, steps_of({.tp = 2}, 3, 4).table, costs());
    const auto other = steps_of({.tp = 2}, 4, 4);
    try {
        planned_program(other.ranks.front(), other.table, plan);
        FAIL();
    } catch (const UserError& error) {
        EXPECT_THAT(error.what(), HasSubstr("it is for another model"));
    }
}

}  // namespace
}  // namespace atl
