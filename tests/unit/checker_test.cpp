// The checker on a sound program of two data-parallel ranks, and on the same program with one fault planted each. A
// fault must be found, and the message must name the op at fault.
#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "program/checker.h"
#include "program/text.h"

namespace atl {
namespace {

constexpr const char* kSound =
    "group dp 0 1\n"
    "value x0 input device f32 [4,8]\n"
    "value x1 input device f32 [4,8]\n"
    "value positions input device i32 [4]\n"
    "value table state device f32 [4,8]\n"
    "value scalars input device f64 [4]\n"
    "value w parameter device f32 [8,8]\n"
    "value bucket gradient device f32 [64]\n"
    "value dw gradient device f32 [8,8] view bucket 0\n"
    "value norm2 output device f64 [1]\n"
    "value y0 activation device f32 [4,8]\n"
    "value r0 activation device f32 [4,8] view y0 0\n"
    "value z0 activation device f32 [4,8]\n"
    "value y1 activation device f32 [4,8]\n"
    "op 0 linear x0 w -> y0 micro_batch=0\n"
    "op 1 rope y0 positions table -> r0 heads=1 kv_heads=1 head_width=8 micro_batch=0\n"
    "op 2 gelu r0 -> z0 micro_batch=0\n"
    "op 3 linear_backward_weight z0 x0 -> dw micro_batch=0\n"
    "op 4 linear x1 w -> y1 micro_batch=1\n"
    "op 5 linear_backward_weight y1 x1 -> dw accumulate=true micro_batch=1\n"
    "op 6 all_reduce bucket -> bucket group=dp resource=link_intra\n"
    "op 7 square_sum dw -> norm2\n"
    "op 8 sgd dw norm2 scalars w -> w\n";

Program program(std::string text, int rank = 0) {
    return parse_program(fmt::format("program 1 rank {}\n", rank) + text);
}

std::string replaced(const std::string& from, const std::string& to) {
    std::string text = kSound;
    const auto place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    return text.replace(place, from.size(), to);
}

// All problems of rank 0's faulty program beside rank 1's sound one.
std::string problems_with(const Program& faulty) {
    return fmt::format("{}", fmt::join(check_programs({faulty, program(kSound, 1)}), "\n"));
}

void expect_found(const Program& faulty, const std::string& op, const std::string& reason) {
    const auto found = problems_with(faulty);
    EXPECT_NE(found.find(op), std::string::npos) << "no " << op << " in: " << found;
    EXPECT_NE(found.find(reason), std::string::npos) << "no " << reason << " in: " << found;
}

TEST(Checker, a_sound_program_has_no_problems) {
    EXPECT_EQ(problems_with(program(kSound)), "");
}

TEST(Checker, finds_a_read_before_any_write) {
    expect_found(program(replaced("gelu r0 ->", "gelu y1 ->")), "op 2 gelu (micro-batch 0)",
                 "reads y1, which no op before it writes");
}

TEST(Checker, finds_an_activation_written_twice) {
    expect_found(program(replaced("op 4 linear x1 w -> y1", "op 4 linear x1 w -> z0")),
                 "op 4 linear (micro-batch 1)", "writes z0, which op 2 gelu (micro-batch 0) has written");
}

TEST(Checker, finds_an_op_that_stands_twice) {
    auto text = replaced(
        "op 4 linear x1 w -> y1 micro_batch=1\n"
        "op 5 linear_backward_weight y1 x1 -> dw accumulate=true micro_batch=1\n",
        "op 4 linear_backward_weight z0 x0 -> dw accumulate=true micro_batch=0\n"
        "op 5 linear x1 w -> y1 micro_batch=1\n");
    expect_found(program(text), "op 4 linear_backward_weight", "does again what op 3");
}

TEST(Checker, finds_a_read_of_what_was_overwritten_in_place) {
    expect_found(program(replaced("gelu r0 ->", "gelu y0 ->")), "op 2 gelu",
                 "reads y0, which op 1 rope (micro-batch 0) has overwritten as r0");
}

TEST(Checker, finds_in_place_work_of_an_op_that_can_not) {
    expect_found(program(replaced("gelu r0 -> z0", "gelu r0 -> r0")), "op 2 gelu", "can't work in place");
}

TEST(Checker, finds_gradients_added_out_of_micro_batch_order) {
    auto text = replaced("op 3 linear_backward_weight z0 x0 -> dw micro_batch=0",
                         "op 3 linear_backward_weight z0 x0 -> dw micro_batch=2");
    expect_found(program(text), "op 5 linear_backward_weight (micro-batch 1)",
                 "micro-batches must come in order");
}

TEST(Checker, finds_a_second_writer_that_overwrites_and_a_first_that_adds) {
    expect_found(program(replaced("-> dw accumulate=true", "-> dw")), "op 5 linear_backward_weight",
                 "overwrites dw");
    expect_found(program(replaced("-> dw micro_batch=0", "-> dw accumulate=true micro_batch=0")),
                 "op 3 linear_backward_weight", "adds to dw, which no op before it writes");
}

TEST(Checker, finds_a_gradient_added_behind_its_reduction) {
    auto text = replaced(
        "op 5 linear_backward_weight y1 x1 -> dw accumulate=true micro_batch=1\n"
        "op 6 all_reduce bucket -> bucket group=dp resource=link_intra\n",
        "op 5 all_reduce bucket -> bucket group=dp resource=link_intra\n"
        "op 6 linear_backward_weight y1 x1 -> dw accumulate=true micro_batch=1\n");
    expect_found(program(text), "op 6 linear_backward_weight", "behind op 5 all_reduce");
}

TEST(Checker, finds_collectives_that_do_not_match) {
    auto faulty = program(kSound);
    faulty.ops[6].kind = OpKind::broadcast;
    expect_found(faulty, "rank 1: op 6 all_reduce", "meets rank 0: op 6 broadcast");

    faulty = program(kSound);
    std::get<CollectiveAttributes>(faulty.ops[6].attributes).sequence = 3;
    expect_found(faulty, "op 6 all_reduce", "is number 3 of group dp; in issue order it is number 0");

    faulty = program(replaced("all_reduce bucket -> bucket", "all_reduce dw -> dw"));
    faulty.values[static_cast<std::size_t>(faulty.find("dw").value())].shape = {8, 7};
    expect_found(faulty, "op 6 all_reduce", "all_reduce of 56 f32");

    faulty = program(kSound);
    faulty.ops.erase(faulty.ops.begin() + 6, faulty.ops.end());
    expect_found(faulty, "rank 1: op 6 all_reduce", "rank 0 has no collective number 0 of group dp");
}

TEST(Checker, finds_a_group_that_is_not_the_same_on_all_members) {
    expect_found(program(replaced("group dp 0 1", "group dp 0 1 2")), "rank 0",
                 "rank 1 doesn't have the same group dp");
}

TEST(Checker, finds_ranks_that_wait_for_each_other) {
    const std::string values =
        "group a 0 1\ngroup b 0 1\n"
        "value g gradient device f32 [4]\nvalue h gradient device f32 [4]\nvalue x input device f32 [4]\n"
        "op 0 linear_backward_weight x x -> g\nop 1 linear_backward_weight x x -> h\n";
    // Each order is fine on its own; together neither collective can start.
    const auto first = program(values +
                               "op 2 all_reduce g -> g group=a resource=link_intra\n"
                               "op 3 all_reduce h -> h group=b resource=link_intra\n");
    const auto second = program(values +
                                    "op 2 all_reduce h -> h group=b resource=link_intra\n"
                                    "op 3 all_reduce g -> g group=a resource=link_intra\n",
                                1);
    const auto problems = check_programs({first, second});
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(problems[0].find("wait for one another"), std::string::npos) << problems[0];
    EXPECT_NE(problems[0].find("op 2 all_reduce"), std::string::npos) << problems[0];
    EXPECT_NE(problems[0].find("op 3 all_reduce"), std::string::npos) << problems[0];
}

TEST(Checker, finds_broken_ids_views_attributes_and_waits) {
    auto faulty = program(kSound);
    faulty.ops[2].id = OpId(1);
    expect_found(faulty, "op 1 gelu", "stands at place 2");

    expect_found(program(replaced("view bucket 0", "view bucket 8")), "view dw",
                 "reaches outside its base bucket");
    expect_found(program(replaced("f32 [4,8] view y0", "f64 [2,8] view y0")), "view r0",
                 "differs from its base y0");

    faulty = program(kSound);
    faulty.ops[2].attributes = NormAttributes{};
    expect_found(faulty, "op 2 gelu", "attributes of another kind");

    faulty = program(kSound);
    faulty.ops[2].after = {OpId(5)};
    expect_found(faulty, "op 2 gelu", "waits for op 5, which doesn't stand before it");

    faulty = program(kSound);
    faulty.ops[2].reads.push_back(ValueId(0));
    expect_found(faulty, "op 2 gelu", "reads 2 values");
}

TEST(Checker, finds_a_write_to_an_input) {
    expect_found(program(replaced("op 4 linear x1 w -> y1", "op 4 linear x0 w -> x1")), "op 4 linear",
                 "writes x1, an input");
}

TEST(Checker, finds_values_that_share_bytes_while_both_are_needed) {
    auto sound = program(kSound);
    auto placement = place(sound);
    EXPECT_EQ(check_placement(sound, placement), std::vector<std::string>{});
    // z0 is written while r0, a view of y0, is being read.
    const auto y0 = static_cast<std::size_t>(sound.find("y0").value());
    const auto z0 = static_cast<std::size_t>(sound.find("z0").value());
    placement.value_offset_bytes[z0] = placement.value_offset_bytes[y0];
    const auto problems = check_placement(sound, placement);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_NE(problems[0].find("y0 of op 0 linear (micro-batch 0)"), std::string::npos) << problems[0];
    EXPECT_NE(problems[0].find("z0 of op 2 gelu (micro-batch 0)"), std::string::npos) << problems[0];
}

TEST(Checker, finds_values_outside_their_arena_or_off_alignment) {
    auto sound = program(kSound);
    auto placement = place(sound);
    placement.value_offset_bytes[static_cast<std::size_t>(sound.find("z0").value())] = 1000;
    const auto problems = check_placement(sound, placement);
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_NE(problems[0].find("z0 lies at byte 1000"), std::string::npos) << problems[0];
    EXPECT_NE(problems[1].find("z0 ends at byte 1128, behind the arena"), std::string::npos) << problems[1];
}

}  // namespace
}  // namespace atl
