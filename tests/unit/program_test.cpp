// The text form's errors, data edges, orders of a step's ops and placement, on small programs.
#include <gtest/gtest.h>

#include "core/check.h"
#include "core/error.h"
#include "program/dependencies.h"
#include "program/placement.h"
#include "program/reorder.h"
#include "program/schedule.h"
#include "program/text.h"

namespace atl {
namespace {

void expect_parse_error(const std::string& text, const std::string& expected) {
    try {
        parse_program(text);
        ADD_FAILURE() << "parsed: " << text;
    } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
}

TEST(ProgramText, errors_name_the_line_and_what_is_expected) {
    expect_parse_error("", "expected \"program 1 rank R\"");
    expect_parse_error("value a input device f32 [2]", "line 1: the text doesn't begin with");
    expect_parse_error("program 2 rank 0", "line 1: \"2\" where \"1\" is expected");
    const std::string head = "program 1 rank 0\nvalue a input device f32 [2]\n";
    expect_parse_error(head + "value a input device f32 [2]", "line 3: a second value named a");
    expect_parse_error(head + "value b place device f32 [2]", "line 3: unknown role \"place\"");
    expect_parse_error(head + "value b input device f33 [2]", "line 3: unknown dtype \"f33\"");
    expect_parse_error(head + "value b input device f32 2", "line 3: \"2\" is not in brackets");
    expect_parse_error(head + "value b input device f32 [2] view c 0\n\n", "line 3: no value is named c");
    expect_parse_error(head + "op 1 gelu a -> a", "line 3: op 1 where op 0 is expected");
    expect_parse_error(head + "op 0 gelo a -> a", "line 3: unknown kind of op \"gelo\"");
    expect_parse_error(head + "op 0 gelu a", "line 3: the line ends where \"->\" is expected");
    expect_parse_error(head + "op 0 gelu a -> a accumulate=true", "line 3: gelu has no field \"accumulate\"");
    expect_parse_error(head + "op 0 gelu a -> a bytes=1e", "line 3: \"1e\" is not a number");
    expect_parse_error(head + "op 0 gelu a -> a layer=99999999999", "is not a number that fits here");
    expect_parse_error(head + "jump", "line 3: \"jump\" is none of program, group, value, op");
}

TEST(ProgramText, refuses_to_print_what_it_could_not_read_back) {
    ProgramBuilder twice;
    twice.add(Value{.name = "a"});
    twice.add(Value{.name = "a"});
    EXPECT_THROW(print(twice.program()), CheckError);
    ProgramBuilder blank;
    blank.add(Value{.name = "a b"});
    EXPECT_THROW(print(blank.program()), CheckError);
}

TEST(OpTable, every_kind_has_its_own_name_and_comes_back_from_it) {
    for (int kind = 0; kind <= static_cast<int>(OpKind::broadcast); ++kind)
        EXPECT_EQ(op_kind_from_name(name(static_cast<OpKind>(kind))), static_cast<OpKind>(kind));
    EXPECT_EQ(op_kind_from_name("none"), std::nullopt);
}

TEST(Program, a_view_of_a_view_resolves_to_the_base_and_the_sum_of_offsets) {
    const auto program = parse_program(
        "program 1 rank 0\n"
        "value a gradient device f64 [100]\n"
        "value b gradient device f64 [50] view a 10\n"
        "value c gradient device f64 [5] view b 7\n");
    EXPECT_EQ(program.resolve(program.find("c")), (ValueView{program.find("a"), 17}));
    const auto range = byte_range(program, program.find("c"));
    EXPECT_EQ(range.begin, 17 * 8);
    EXPECT_EQ(range.end, 22 * 8);
}

TEST(DataEdges, join_writers_and_readers_of_the_same_bytes_only) {
    const auto program = parse_program(
        "program 1 rank 0\n"
        "value in input device f32 [4]\n"
        "value bucket gradient device f32 [8]\n"
        "value left gradient device f32 [4] view bucket 0\n"
        "value right gradient device f32 [4] view bucket 4\n"
        "value sum output device f64 [1]\n"
        "op 0 linear_backward_weight in in -> left\n"
        "op 1 linear_backward_weight in in -> right\n"
        "op 2 square_sum left -> sum\n"
        "op 3 all_reduce bucket -> bucket group=dp\n"
        "op 4 square_sum right -> sum\n");
    using Ids = std::vector<OpId>;
    const std::vector<Ids> expected = {{},
                                       {},                           // the other half of the bucket
                                       {OpId(0)},                    // read after write
                                       {OpId(0), OpId(1), OpId(2)},  // and write after read
                                       {OpId(2), OpId(3)}};          // 1 is behind 3; sum again
    EXPECT_EQ(data_edges(program), expected);
}

// Two layers without a head, two micro-batches, one bucket per layer.
StepOps small_step() {
    StepBuilder builder(Rank(0), 2, 2);
    builder.add_group("dp", {Rank(0), Rank(1)});
    const auto value = [&](std::string name, Role role, Shape shape = {4}) {
        return builder.add(Value{.name = std::move(name), .shape = std::move(shape), .role = role});
    };
    const auto in = value("in", Role::input);
    const std::vector<ValueId> buckets = {value("bucket_0", Role::gradient),
                                          value("bucket_1", Role::gradient)};
    for (std::int32_t k = 0; k < 2; ++k) {
        for (std::int32_t layer = 0; layer < 2; ++layer) {
            builder.open({StepPart::forward, layer, k});
            builder.add(Op{.kind = OpKind::gelu,
                           .reads = {in},
                           .writes = {value(fmt::format("y{}{}", layer, k), Role::activation)}});
        }
        for (std::int32_t layer = 1; layer >= 0; --layer) {
            builder.open({StepPart::backward_weight, layer, k});
            builder.add(Op{.kind = OpKind::linear_backward_weight,
                           .attributes = AccumulateAttributes{k > 0},
                           .reads = {in, in},
                           .writes = {buckets[static_cast<std::size_t>(layer)]}});
            builder.open({StepPart::backward_input, layer, k});
            builder.add(Op{.kind = OpKind::gelu,
                           .reads = {in},
                           .writes = {value(fmt::format("d{}{}", layer, k), Role::activation)}});
        }
    }
    builder.open({StepPart::reduction});
    for (const auto bucket : buckets)
        builder.add(Op{.kind = OpKind::all_reduce,
                       .attributes = CollectiveAttributes{"dp", 0},
                       .reads = {bucket},
                       .writes = {bucket},
                       .resource = Resource::link_intra});
    builder.open({StepPart::optimizer});
    builder.add(Op{.kind = OpKind::square_sum, .reads = buckets, .writes = {value("norm2", Role::output)}});
    return builder.take();
}

TEST(SerialSchedule, runs_micro_batch_by_micro_batch_and_reduces_each_bucket_at_its_last_gradient) {
    const auto program = serial_schedule(small_step());
    std::vector<std::string> found;
    for (const auto& op : program.ops)
        found.push_back(fmt::format("{} {} {}", name(op.kind), op.layer, op.micro_batch));
    const std::vector<std::string> expected = {"gelu 0 0", "gelu 1 0", "linear_backward_weight 1 0",
                                               "gelu 1 0", "linear_backward_weight 0 0", "gelu 0 0",
                                               "gelu 0 1", "gelu 1 1", "linear_backward_weight 1 1",
                                               // Beside the rest of backward.
                                               "all_reduce -1 -1", "gelu 1 1", "linear_backward_weight 0 1",
                                               "all_reduce -1 -1", "gelu 0 1", "square_sum -1 -1"};
    EXPECT_EQ(found, expected);
    // Numbered in issue order, though the bucket of layer 1 was emitted second.
    EXPECT_EQ(program.value(program.ops[9].reads[0]).name, "bucket_1");
    EXPECT_EQ(std::get<CollectiveAttributes>(program.ops[9].attributes).sequence, 0);
    EXPECT_EQ(std::get<CollectiveAttributes>(program.ops[12].attributes).sequence, 1);
}

TEST(Reordered, takes_every_op_exactly_once) {
    const auto step = small_step();
    std::vector<OpId> order;
    for (const auto& op : step.program.ops) order.push_back(op.id);
    EXPECT_EQ(reordered(step.program, order).ops.size(), step.program.ops.size());
    auto twice = order;
    twice.push_back(OpId(0));
    EXPECT_THROW(reordered(step.program, twice), CheckError);
    order.pop_back();
    EXPECT_THROW(reordered(step.program, order), CheckError);
}

TEST(Placement, values_that_never_live_together_share_bytes) {
    auto program = parse_program(
        "program 1 rank 0\n"
        "value in input device f32 [100]\n"
        "value w parameter device f32 [10]\n"
        "value v parameter device f32 [10]\n"
        "value a activation device f32 [100]\n"
        "value b activation device f32 [100]\n"
        "value c activation device f32 [100]\n"
        "value t activation host f32 [3]\n"
        "op 0 gelu in -> a\n"
        "op 1 gelu a -> b scratch_bytes=65\n"
        "op 2 gelu b -> c\n"
        "op 3 gelu c -> t\n");
    const auto placement = place(program);
    const auto offset = [&](const char* name) {
        return placement.value_offset_bytes[static_cast<std::size_t>(program.find(name).value())];
    };
    EXPECT_EQ(offset("a"), offset("c"));
    EXPECT_NE(offset("a"), offset("b"));
    // 100 floats rounded up to 448 bytes, twice; the scratch of op 1 lies behind both, its last byte is the peak.
    EXPECT_EQ(placement.arena_bytes.at({Role::activation, Space::device}), 448 + 448 + 65);
    EXPECT_EQ(placement.scratch_offset_bytes, (std::vector<std::int64_t>{-1, 896, -1, -1}));
    EXPECT_EQ(placement.arena_bytes.at({Role::activation, Space::host}), 12);
    EXPECT_EQ(offset("v"), 64);
    EXPECT_EQ(placement.arena_bytes.at({Role::parameter, Space::device}), 64 + 40);
    EXPECT_EQ(placement.peak_bytes(), 961 + 12 + 104 + 400);
}

TEST(Placement, without_an_edge_between_two_resources_bytes_are_not_reused) {
    const std::string text =
        "program 1 rank 0\n"
        "value in input device f32 [16]\n"
        "value a activation device f32 [16]\n"
        "value b activation device f32 [16]\n"
        "value c activation device f32 [16]\n"
        "op 0 gelu in -> a\n"
        "op 1 gelu a -> b resource=copy\n"  // reads a, perhaps long after op 2 has begun
        "op 2 gelu in -> c\n";
    const ArenaId arena{Role::activation, Space::device};
    auto program = parse_program(text);
    EXPECT_EQ(place(program).arena_bytes.at(arena), 3 * 64);
    EXPECT_TRUE(program.ops[2].after.empty());
    EXPECT_EQ(place(program, {.after_edge_distance = 1}).arena_bytes.at(arena), 2 * 64);
    EXPECT_EQ(program.ops[2].after, std::vector<OpId>{OpId(1)});
}

}  // namespace
}  // namespace atl
