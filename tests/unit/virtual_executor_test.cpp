// The virtual executor and the cost model on cases worked out by hand. Each program's ops and durations are given as
// a table, each expected time is the sum that stands beside it.
#include <gtest/gtest.h>

#include "core/check.h"
#include "program/cost_model.h"
#include "program/text.h"
#include "program/virtual_executor.h"

namespace atl {
namespace {

constexpr auto kCompute = static_cast<std::size_t>(Resource::compute);
constexpr auto kLink = static_cast<std::size_t>(Resource::link_intra);

Program with_values(const std::string& rest, int rank = 0) {
    return parse_program(fmt::format("program 1 rank {}\n", rank) +
                         "group dp 0 1\n"
                         "value in input device f32 [4]\n"
                         "value a activation device f32 [4]\n"
                         "value b activation device f32 [4]\n"
                         "value c activation device f32 [4]\n"
                         "value d activation device f32 [4]\n"
                         "value g gradient device f32 [4]\n"
                         "value h gradient device f32 [4]\n" +
                         rest);
}

TEST(VirtualExecutor, ops_of_two_resources_overlap_where_data_lets_them) {
    const auto program = with_values(
        "op 0 swiglu in -> a\n"
        "op 1 swiglu a -> b resource=copy\n"
        "op 2 swiglu a -> c\n"
        "op 3 add b c -> d\n");
    const auto run = execute_virtually({program}, {{1, 5, 2, 1}});
    EXPECT_EQ(run.ops[0][0], (OpTime{0, 1}));
    EXPECT_EQ(run.ops[0][1], (OpTime{1, 6}));
    EXPECT_EQ(run.ops[0][2], (OpTime{1, 3}));  // beside op 1
    EXPECT_EQ(run.ops[0][3], (OpTime{6, 7}));  // waits for op 1
    EXPECT_EQ(run.step_seconds, 7);
    EXPECT_EQ(run.busy_seconds[0][kCompute], 4);
}

TEST(VirtualExecutor, an_op_waits_for_its_resource_in_issue_order_even_if_its_data_are_there) {
    const auto program = with_values(
        "op 0 swiglu in -> a\n"
        "op 1 swiglu a -> b resource=copy\n"
        "op 2 swiglu in -> c resource=copy\n");
    const auto run = execute_virtually({program}, {{3, 2, 1}});
    EXPECT_EQ(run.ops[0][2], (OpTime{5, 6}));
}

// Slowdowns of swiglu on the compute engine and on the copy engine, which stands for a link.
OverlapModel mutual(double compute, double copy) {
    return OverlapModel({{.first = {OpFamily::elementwise, Resource::compute},
                          .second = {OpFamily::elementwise, Resource::copy},
                          .first_slowdown = compute,
                          .second_slowdown = copy}});
}

TEST(VirtualExecutor, two_ops_at_once_take_what_their_overlap_effectiveness_says) {
    const auto program = with_values(
        "op 0 swiglu in -> a\n"
        "op 1 swiglu in -> b resource=copy\n");
    // Effectiveness 0.7: slowdown 1.3 of both; 3 + 5 - 0.7 * 3 together.
    const auto run = execute_virtually({program}, {{3, 5}}, ExecutionMode::event, mutual(1.3, 1.3));
    EXPECT_DOUBLE_EQ(run.ops[0][0].end_seconds, 3.9);
    EXPECT_DOUBLE_EQ(run.step_seconds, 5.9);
    EXPECT_DOUBLE_EQ(run.busy_seconds[0][kCompute], 3.9);
}

TEST(VirtualExecutor, each_side_has_its_own_slowdown_for_as_long_as_both_run) {
    const auto program = with_values(
        "op 0 swiglu in -> a\n"
        "op 1 swiglu a -> b resource=copy\n"
        "op 2 swiglu a -> c\n"
        "op 3 swiglu a -> d\n");
    // From 1 on: the copy's 6 seconds run at rate 1/2 beside op 2's 2 at 1/1.5, until 4; beside op 3's 1 until 5.5;
    // 1.5 and 0.75 are then done, and 3.75 left.
    const auto run = execute_virtually({program}, {{1, 6, 2, 1}}, ExecutionMode::event, mutual(1.5, 2));
    EXPECT_DOUBLE_EQ(run.ops[0][2].end_seconds, 4);
    EXPECT_DOUBLE_EQ(run.ops[0][3].end_seconds, 5.5);
    EXPECT_DOUBLE_EQ(run.step_seconds, 9.25);
}

TEST(VirtualExecutor, a_collective_goes_as_slowly_as_on_its_busiest_rank) {
    const std::string ops =
        "op 0 all_reduce g -> g resource=link_intra bytes=16 group=dp sequence=0\n"
        "op 1 all_reduce h -> h resource=link_intra bytes=16 group=dp sequence=1\n"
        "op 2 swiglu in -> a\n";
    const auto busy = with_values(ops, 0), idle = with_values(ops, 1);
    const OverlapModel model({{.first = {OpFamily::elementwise, Resource::compute},
                               .second = {OpFamily::reduce, Resource::link_intra},
                               .first_slowdown = 1,
                               .second_slowdown = 2}});
    const auto run = execute_virtually({busy, idle}, {{2, 1, 3}, {2, 1, 0}}, ExecutionMode::event, model);
    EXPECT_DOUBLE_EQ(run.ops[0][2].end_seconds, 3);
    EXPECT_DOUBLE_EQ(run.ops[1][0].end_seconds, 3.5) << "3 seconds at half its rate";
    EXPECT_DOUBLE_EQ(run.step_seconds, 4.5);
}

TEST(VirtualExecutor, after_edges_hold_back_what_data_would_not) {
    const auto program = with_values(
        "op 0 swiglu in -> a resource=copy\n"
        "op 1 swiglu in -> b after=0\n");
    EXPECT_EQ(execute_virtually({program}, {{4, 1}}).ops[0][1], (OpTime{4, 5}));
}

TEST(VirtualExecutor, a_write_waits_for_readers_of_what_it_overwrites) {
    const auto program = with_values(
        "op 0 linear_backward_weight in in -> g\n"
        "op 1 square_sum g -> a resource=copy\n"
        "op 2 linear_backward_weight in in -> g accumulate=true\n");
    EXPECT_EQ(execute_virtually({program}, {{1, 6, 1}}).ops[0][2], (OpTime{7, 8}));
}

// Rank 1 is twice as slow. Each bucket's reduction starts when the slower rank's gradient is there.
TEST(VirtualExecutor, a_collective_starts_when_the_last_rank_arrives_and_ends_for_all) {
    const std::string ops =
        "op 0 linear_backward_weight in in -> g\n"
        "op 1 all_reduce g -> g group=dp resource=link_intra\n"
        "op 2 linear_backward_weight in in -> h\n"
        "op 3 all_reduce h -> h group=dp sequence=1 resource=link_intra\n"
        "op 4 square_sum g h -> a\n";
    const auto run =
        execute_virtually({with_values(ops, 0), with_values(ops, 1)}, {{1, 3, 1, 3, 1}, {2, 3, 2, 4, 1}});
    for (const auto rank : {0u, 1u}) {
        EXPECT_EQ(run.ops[rank][1], (OpTime{2, 5}));  // rank 1 arrives at 2
        EXPECT_EQ(run.ops[rank][3], (OpTime{5, 9}));  // link busy until 5; the longer duration counts
        EXPECT_EQ(run.ops[rank][4], (OpTime{9, 10}));
        EXPECT_EQ(run.busy_seconds[rank][kLink], 7);
    }
    EXPECT_EQ(run.ops[0][2], (OpTime{1, 2}));  // overlaps the first reduction
    EXPECT_EQ(run.step_seconds, 10);
}

TEST(VirtualExecutor, ranks_that_deadlock_fail_a_check_naming_an_op) {
    const auto first = with_values(
        "op 0 all_reduce g -> g group=dp resource=link_intra\n"
        "op 1 all_reduce h -> h group=tp resource=link_intra\n");
    const auto second = with_values(
        "op 0 all_reduce h -> h group=tp resource=link_intra\n"
        "op 1 all_reduce g -> g group=dp resource=link_intra\n",
        1);
    try {
        execute_virtually({first, second}, {{1, 1}, {1, 1}});
        FAIL();
    } catch (const CheckError& error) {
        EXPECT_NE(std::string(error.what()).find("all_reduce"), std::string::npos) << error.what();
    }
}

// Rank 0 computes for 3, then sends; rank 1 has posted its receive at 0 and computes meanwhile.
TEST(VirtualExecutor, a_transfer_starts_when_both_ends_are_posted_and_holds_up_neither_rank) {
    const auto sender = with_values(
        "op 0 swiglu in -> a\n"
        "op 1 send a -> peer=1 resource=send\n"
        "op 2 swiglu in -> b\n");
    const auto receiver = with_values(
        "op 0 receive -> a peer=0 resource=receive\n"
        "op 1 swiglu in -> b\n"
        "op 2 add a b -> c\n",
        1);
    const auto run = execute_virtually({sender, receiver}, {{3, 2, 4}, {2, 1, 1}});
    EXPECT_EQ(run.ops[0][1], (OpTime{3, 5}));
    EXPECT_EQ(run.ops[0][2], (OpTime{3, 7}));  // beside the transfer
    EXPECT_EQ(run.ops[1][0], (OpTime{3, 5}));
    EXPECT_EQ(run.ops[1][1], (OpTime{0, 1}));
    EXPECT_EQ(run.ops[1][2], (OpTime{5, 6}));
    EXPECT_EQ(run.busy_seconds[1][static_cast<std::size_t>(Resource::receive)], 2);
}

// Two messages from 0 to 1, then one from 0 to 2. The pairs' transfers overlap, those of one pair don't, and the send
// to rank 2 ends for those that wait for it when the earlier sends have.
TEST(VirtualExecutor, transfers_of_one_pair_follow_each_other_and_ends_keep_issue_order) {
    const auto sender = with_values(
        "op 0 send in -> peer=1 resource=send\n"
        "op 1 send in -> peer=1 sequence=1 resource=send\n"
        "op 2 send in -> peer=2 resource=send\n");
    const auto first = with_values(
        "op 0 receive -> a peer=0 resource=receive\n"
        "op 1 receive -> b peer=0 sequence=1 resource=receive\n",
        1);
    const auto second = with_values("op 0 receive -> a peer=0 resource=receive\n", 2);
    const auto run = execute_virtually({sender, first, second}, {{5, 5, 3}, {5, 5}, {3}});
    EXPECT_EQ(run.ops[0][0], (OpTime{0, 5}));
    EXPECT_EQ(run.ops[0][1], (OpTime{5, 10}));
    EXPECT_EQ(run.ops[0][2], (OpTime{0, 10}));
    EXPECT_EQ(run.ops[2][0], (OpTime{0, 3}));
    EXPECT_EQ(run.step_seconds, 10);
}

TEST(VirtualExecutor, a_receive_is_posted_when_the_memory_it_waits_for_is_free) {
    const auto sender = with_values("op 0 send in -> peer=1 resource=send\n");
    const auto receiver = with_values(
        "op 0 swiglu in -> b\n"
        "op 1 receive -> a peer=0 resource=receive after=0\n",
        1);
    EXPECT_EQ(execute_virtually({sender, receiver}, {{1}, {6, 1}}).ops[0][0], (OpTime{6, 7}));
}

// Each rank first receives what the other sends behind its own receive.
std::vector<Program> ranks_that_receive_first() {
    const auto ops = [](int peer) {
        return fmt::format(
            "op 0 receive -> a peer={} resource=receive\n"
            "op 1 send in -> peer={} resource=send\n",
            peer, peer);
    };
    return {with_values(ops(1), 0), with_values(ops(0), 1)};
}

TEST(VirtualExecutor, sends_overtake_receives_unless_all_is_done_in_list_order) {
    const std::vector<std::vector<double>> seconds = {{2, 2}, {2, 2}};
    EXPECT_EQ(execute_virtually(ranks_that_receive_first(), seconds).step_seconds, 2);
    EXPECT_THROW(execute_virtually(ranks_that_receive_first(), seconds, ExecutionMode::serial), CheckError);
}

TEST(VirtualExecutor, two_ranks_that_send_to_each_other_first_get_on_in_every_mode) {
    const auto ops = [](int peer) {
        return fmt::format(
            "op 0 send in -> peer={} resource=send\n"
            "op 1 swiglu in -> b\n"
            "op 2 receive -> a peer={} resource=receive\n",
            peer, peer);
    };
    for (const auto mode : {ExecutionMode::event, ExecutionMode::barrier, ExecutionMode::serial}) {
        const auto run =
            execute_virtually({with_values(ops(1), 0), with_values(ops(0), 1)}, {{2, 3, 2}, {2, 3, 2}}, mode);
        EXPECT_EQ(run.step_seconds, mode == ExecutionMode::event ? 3 : 5) << name(mode);
    }
}

// Two blocks of a collective and the compute beside it; the second compute op needs nothing of the first block.
TEST(VirtualExecutor, barriers_hold_back_the_next_block_and_serial_order_every_op) {
    const auto program = with_values(
        "op 0 all_reduce g -> g group=tp resource=link_intra\n"
        "op 1 swiglu in -> a\n"
        "op 2 all_reduce h -> h group=tp sequence=1 resource=link_intra\n"
        "op 3 swiglu in -> b\n");
    EXPECT_EQ(segments_of(program), (std::vector<std::int32_t>{0, 0, 1, 1}));
    const std::vector<std::vector<double>> seconds = {{5, 2, 1, 4}};
    const auto seconds_in = [&](ExecutionMode mode) {
        return execute_virtually({program}, seconds, mode).step_seconds;
    };
    EXPECT_EQ(seconds_in(ExecutionMode::event), 6);    // the longer of 5 + 1 and 2 + 4
    EXPECT_EQ(seconds_in(ExecutionMode::barrier), 9);  // 5, the longer of 5 and 2; then 4
    EXPECT_EQ(seconds_in(ExecutionMode::serial), 12);
}

TEST(CostModel, compute_takes_the_longer_of_arithmetic_and_memory_plus_overhead) {
    const MachineRates rates{
        .flops_per_second = 100, .memory_bytes_per_second = 10, .op_overhead_seconds = 0.5};
    const auto program = with_values(
        "op 0 swiglu in -> a flops=300 bytes=20\n"
        "op 1 swiglu a -> b flops=100 bytes=40\n");
    EXPECT_EQ(predicted_seconds(program, rates), (std::vector<double>{0.5 + 3, 0.5 + 4}));
}

TEST(CostModel, collectives_pay_latency_for_each_step_of_their_ring) {
    const MachineRates rates{.link_intra = {.bytes_per_second = 1000, .latency_seconds = 0.25}};
    const auto program = with_values(
        "op 0 all_reduce g -> g group=dp resource=link_intra bytes=500\n"
        "op 1 all_reduce_max g -> g group=dp resource=link_intra bytes=500\n"
        "op 2 broadcast g -> g group=dp resource=link_intra bytes=500\n"
        "op 3 all_gather a -> b group=dp resource=link_intra bytes=500\n"
        "op 4 reduce_scatter b -> c group=dp resource=link_intra bytes=500\n");
    // Two ranks: 2 · (2 - 1) steps and 2 - 1 steps.
    EXPECT_EQ(predicted_seconds(program, rates),
              (std::vector<double>{0.5 + 0.5, 0.5 + 0.5, 0.25 + 0.5, 0.25 + 0.5, 0.25 + 0.5}));
}

TEST(CostModel, a_message_pays_latency_once) {
    const MachineRates rates{.point_to_point = {.bytes_per_second = 1000, .latency_seconds = 0.25}};
    const auto program = with_values(
        "op 0 send in -> peer=1 resource=send bytes=500\n"
        "op 1 receive -> a peer=1 resource=receive bytes=250\n");
    EXPECT_EQ(predicted_seconds(program, rates), (std::vector<double>{0.25 + 0.5, 0.25 + 0.25}));
}

}  // namespace
}  // namespace atl
