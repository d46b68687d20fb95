// Tables, their text, and what becomes of a step's ops in a table's order.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/check.h"
#include "core/error.h"
#include "program/checker.h"
#include "program/interleave.h"
#include "program/schedule_evaluation.h"
#include "program/text.h"
#include "support/pipeline_step.h"

namespace atl {
namespace {

ScheduleTable two_ranks(const std::string& first, const std::string& second, int micro_batches = 2) {
    return parse_schedule_table(
        fmt::format("schedule ranks 2 chunks 1 round_robin micro_batches {}\nrank 0: {}\nrank 1: {}\n",
                    micro_batches, first, second));
}

TEST(ScheduleTable, one_forward_one_backward_of_two_ranks) {
    const auto table =
        make_schedule_table({.kind = ScheduleKind::one_f_one_b, .ranks = 2, .micro_batches = 3});
    EXPECT_EQ(print(table),
              "schedule ranks 2 chunks 1 round_robin micro_batches 3\n"
              "rank 0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2\n"
              "rank 1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2\n");
}

TEST(ScheduleTable, strands_on_one_rank_pair_each_forward_with_the_backward_before) {
    ScheduleOptions options{.kind = ScheduleKind::strands, .micro_batches = 4};
    EXPECT_EQ(print(make_schedule_table(options)),
              "schedule ranks 1 chunks 1 round_robin micro_batches 4\n"
              "rank 0: F0.0 (F0.1|B0.0) (F0.2|B0.1) (F0.3|B0.2) B0.3\n");
    options.memory_micro_batches = 3;
    EXPECT_EQ(print(make_schedule_table(options)),
              "schedule ranks 1 chunks 1 round_robin micro_batches 4\n"
              "rank 0: (F0.0|F0.1) (F0.2|B0.0) (F0.3|B0.1) (B0.2|B0.3)\n");
    options.memory_micro_batches = 1;
    EXPECT_THROW(make_schedule_table(options), CheckError);
}

// How many slots pair work of these two kinds, in either order.
int count_pairs(const ScheduleTable& table, WorkKind a, WorkKind b) {
    int count = 0;
    for (const auto& slots : table.ranks)
        for (const auto& [first, second] : slots)
            count +=
                second && ((first.kind == a && second->kind == b) || (first.kind == b && second->kind == a));
    return count;
}

TEST(ScheduleTable, a_memory_budget_lets_strands_pair_forwards_and_weight_gradients_too) {
    using enum WorkKind;
    for (const std::int32_t ranks : {2, 3, 4}) {
        ScheduleOptions options{.kind = ScheduleKind::strands, .ranks = ranks, .micro_batches = 4 * ranks};
        const WorkCosts costs{.pair_gain = 1.25};
        const auto plain = make_schedule_table(options);
        EXPECT_EQ(count_pairs(plain, forward, forward), 0);
        options.memory_micro_batches = ranks + 1;
        const auto table = make_schedule_table(options);
        EXPECT_GE(count_pairs(table, forward, forward), 1) << print(table);
        EXPECT_GE(count_pairs(table, forward, weight_gradient), 1) << print(table);
        EXPECT_LE(evaluate(table, costs).step_seconds, evaluate(plain, costs).step_seconds);
        for (const auto pieces : peak_pieces(table)) EXPECT_LE(pieces, 2 * (ranks + 1));
    }
}

TEST(ScheduleTable, text_that_can_not_be_read_names_its_line) {
    const auto message = [](const std::string& text) -> std::string {
        try {
            parse_schedule_table(text);
        } catch (const UserError& error) {
            return error.what();
        }
        return "read";
    };
    const std::string head = "schedule ranks 1 chunks 1 fold micro_batches 1\n";
    EXPECT_EQ(message("table"), "[schedule] line 1: \"table\" where schedule is expected");
    EXPECT_EQ(message(head + "rank 1: F0.0"), "[schedule] line 2: \"1:\" where 0: is expected");
    EXPECT_EQ(message(head + "rank 0: F0.0 G0.1"),
              "[schedule] line 2: \"G0.1\" where work like F0.3 or B1.2 is expected");
    EXPECT_EQ(message(head + "rank 0: (F0.0)"),
              "[schedule] line 2: \"(F0.0)\" where a pair like (F0.4|B1.3) is expected");
    EXPECT_EQ(message(head + "rank 0: F0.x"), "[schedule] line 2: \"x\" where a number is expected");
    EXPECT_EQ(message("schedule ranks 1 chunks 1 heap micro_batches 1\n"),
              "[schedule] line 1: \"heap\" where fold or round_robin is expected");
}

TEST(CheckTable, finds_what_is_wrong_and_names_it) {
    const std::string good = "F1.0 B1.0 F1.1 B1.1";
    EXPECT_EQ(check_table(two_ranks("F0.0 F0.1 B0.0 B0.1", good)), std::vector<std::string>{});
    const auto first = [&](const std::string& slots) {
        const auto problems = check_table(two_ranks(slots, good));
        return problems.empty() ? "none" : problems.front();
    };
    EXPECT_EQ(first("F0.0 F0.1 B0.0"), "nobody does I0.1");
    EXPECT_EQ(first("F0.0 F0.1 B0.0 B0.1 F0.1"), "F0.1 is done twice");
    EXPECT_EQ(first("F0.0 F0.1 B0.1 B0.0"),
              "rank 0: B0.0: comes behind micro-batch 1; gradients are added in order");
    EXPECT_EQ(first("F0.0 F1.1 B0.0 B0.1"), "rank 0: F1.1: stage 1 is rank 1's");
    EXPECT_EQ(first("F0.0 F0.2 B0.0 B0.1"), "rank 0: F0.2: there is no such stage or micro-batch");
    EXPECT_EQ(first("F0.0 (F0.1|B0.1) B0.0"), "rank 0: (F0.1|B0.1): both strands are of one micro-batch");
    EXPECT_EQ(first("F0.0 B0.0 B0.1 F0.1"), "rank 0: B0.1 waits for work that waits for it");
    // Each rank's order is fine alone.
    EXPECT_EQ(check_table(two_ranks("F0.0 B0.0 F0.1 B0.1", "F1.0 F1.1 B1.0 B1.1")).size(), 2u);
}

TEST(Evaluate, a_slot_waits_for_work_and_transfer_and_pairs_gain) {
    const auto table = two_ranks("F0.0 F0.1 I0.0 W0.0 B0.1", "F1.0 (F1.1|B1.0) B1.1");
    const auto result = evaluate(table, {.forward_seconds = 2,
                                         .input_gradient_seconds = 3,
                                         .weight_gradient_seconds = 1,
                                         .transfer_seconds = 1,
                                         .pair_gain = 2,
                                         .stage_scale = {1, 2}});
    // On rank 1: F 4, B 8, the pair (4 + 8) / 2.
    const std::vector<SlotTime> second = {{3, 7}, {7, 13}, {13, 21}};
    EXPECT_EQ(result.slots[1], second);
    const std::vector<SlotTime> first = {{0, 2}, {2, 4}, {14, 17}, {17, 18}, {22, 26}};
    EXPECT_EQ(result.slots[0], first);
    EXPECT_EQ(result.step_seconds, 26);
    EXPECT_EQ(result.busy_seconds, (std::vector<double>{12, 18}));
    EXPECT_EQ(result.peak_pieces, (std::vector<std::int32_t>{2, 2}));
    EXPECT_DOUBLE_EQ(result.bubble_share(), 1 - 30.0 / 52);
}

// "F0 c" for compute of the first strand's first layer, "F0 x" for its communication.
TEST(Interleave, puts_each_collective_before_the_other_strands_compute) {
    ProgramBuilder builder;
    const auto layer = [&](std::int32_t strand, int pieces) {
        std::vector<OpId> ops;
        for (int i = 0; i < pieces; ++i)
            for (const auto resource : {Resource::compute, Resource::link_intra})
                ops.push_back(builder.add(Op{.strand = strand, .resource = resource}));
        return ops;
    };
    const auto text = [&](const LayerOps& first, const LayerOps& second) {
        std::string found;
        for (const auto id : interleave(builder.program(), first, second)) {
            const auto& op = builder.program().op(id);
            found += fmt::format("{}{} ", op.strand, op.resource == Resource::compute ? "c" : "x");
        }
        return found;
    };
    const LayerOps two = {layer(0, 2), layer(0, 2)}, one = {layer(1, 2)},
                   three = {layer(1, 1), layer(1, 1), {}};
    // The first strand's second layer beside the second half of the other's only one.
    EXPECT_EQ(text(two, one), "0c 0x 1c 1x 0c 0x 0c 0x 1c 1x 0c 0x ");
    EXPECT_EQ(text(two, three), "0c 0x 1c 1x 0c 0x 1c 1x 0c 0x 0c 0x ");
    EXPECT_EQ(text(two, {}), "0c 0x 0c 0x 0c 0x 0c 0x ");
    EXPECT_EQ(text({}, one), "1c 1x 1c 1x ");
}

std::vector<std::string> kinds_of(const Program& program, OpKind kind) {
    std::vector<std::string> found;
    for (const auto& op : program.ops)
        if (op.kind == kind) found.push_back(fmt::format("{}.{}", op.layer, op.micro_batch));
    return found;
}

TEST(Expand, serial_table_of_one_rank_is_the_serial_schedule) {
    const auto step = test::make_pipeline_steps({.micro_batches = 3, .data_ranks = 2}).front();
    const auto table = make_schedule_table({.micro_batches = 3});
    EXPECT_EQ(print(expand(step, table)), print(serial_schedule(step)));
}

TEST(Expand, weight_gradients_stand_behind_the_next_collective_of_their_layer) {
    const auto kinds = [](std::int32_t tensor_ranks) {
        const auto step =
            test::make_pipeline_steps({.micro_batches = 1, .tensor_ranks = tensor_ranks}).front();
        std::string found;
        for (const auto& op : serial_schedule(step).ops)
            if (op.layer == 2 && op.kind >= OpKind::linear_backward_input && op.kind != OpKind::gelu)
                found += fmt::format("{} ", name(op.kind));
        return found.substr(found.find("gelu_backward"));
    };
    EXPECT_EQ(kinds(1), "gelu_backward linear_backward_weight linear_backward_input ");
    EXPECT_EQ(kinds(2), "gelu_backward linear_backward_input reduce_scatter linear_backward_weight ");
}

TEST(Expand, pairs_run_layer_by_layer_in_mirrored_order_as_two_strands) {
    const auto table = make_schedule_table({.kind = ScheduleKind::strands, .micro_batches = 2});
    const auto steps = test::make_pipeline_steps({.layers = 3, .micro_batches = 2, .tensor_ranks = 2});
    const auto programs = test::expand_all(steps, table);
    EXPECT_EQ(check_programs(programs), std::vector<std::string>{});
    std::vector<std::string> found;
    for (const auto& op : programs.front().ops) {
        if (op.kind == OpKind::gelu && op.micro_batch == 1) found.push_back(fmt::format("F{}", op.layer));
        if (op.kind == OpKind::gelu_backward && op.strand == 1) found.push_back(fmt::format("B{}", op.layer));
    }
    // F of micro-batch 1 up the layers, B of micro-batch 0 down.
    EXPECT_EQ(fmt::format("{}", fmt::join(found, " ")), "F0 B2 F1 B1 F2 B0");
}

// Rank 0 makes the message of F0.1 before that of B3.0; rank 1 wants them the other way round.
TEST(Expand, sends_follow_the_peers_order_and_receives_free_what_is_proven_received) {
    const auto table = parse_schedule_table(
        "schedule ranks 2 chunks 2 fold micro_batches 2\n"
        "rank 0: F0.0 F3.0 F0.1 I3.0 W3.0 F3.1 B3.1 B0.0 B0.1\n"
        "rank 1: F1.0 F2.0 B2.0 B1.0 F1.1 F2.1 B2.1 B1.1\n");
    ASSERT_EQ(check_table(table), std::vector<std::string>{});
    const auto steps = test::make_pipeline_steps({.pipeline = table.pipeline});
    const auto programs = test::expand_all(steps, table);
    // Layers 0 and 3 lie on rank 0: forward of 0 is sent to stage 1, the gradient of 3 to stage 2.
    EXPECT_EQ(kinds_of(programs[0], OpKind::send), (std::vector<std::string>{"0.0", "3.0", "0.1", "3.1"}));
    EXPECT_EQ(kinds_of(programs[1], OpKind::receive), (std::vector<std::string>{"1.0", "2.0", "1.1", "2.1"}));
    EXPECT_EQ(kinds_of(programs[0], OpKind::receive), (std::vector<std::string>{"3.0", "3.1", "0.0", "0.1"}));

    const auto& program = programs[0];
    const auto& last = *std::ranges::find_if(program.ops, [](const Op& op) {
        return op.kind == OpKind::receive && op.layer == 0 && op.micro_batch == 1;
    });
    std::vector<std::string> waits;
    for (const auto id : last.after) waits.push_back(describe(program.op(id)));
    // B3.1 is two slots before; B1.1 comes after B2.1, which took up the gradient of layer 3.
    EXPECT_EQ(waits, (std::vector<std::string>{"op 28 linear_backward_input (layer 3, micro-batch 1)",
                                               "op 29 send (layer 3, micro-batch 1)"}));
    EXPECT_EQ(check_programs(programs), std::vector<std::string>{});
}

TEST(Expand, refuses_a_table_of_other_stages_or_micro_batches) {
    const auto table =
        make_schedule_table({.kind = ScheduleKind::one_f_one_b, .ranks = 2, .micro_batches = 2});
    auto steps = test::make_pipeline_steps({.pipeline = table.pipeline, .micro_batches = 3});
    EXPECT_THROW(expand(steps[0], table), CheckError);
    steps = test::make_pipeline_steps({.pipeline = {4, 1}});
    EXPECT_THROW(expand(steps[3], table), CheckError);
}

}  // namespace
}  // namespace atl
