// Faults planted into sound programs of four ranks, two pipeline stages of two tensor-parallel ranks each: the checker
// finds each one and names the ops.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "program/checker.h"
#include "program/reorder.h"
#include "program/text.h"
#include "support/pipeline_step.h"

namespace atl {
namespace {

class PlantedFault : public testing::Test {
  protected:
    PlantedFault() {
        const auto table =
            make_schedule_table({.kind = ScheduleKind::one_f_one_b, .ranks = 2, .micro_batches = 3});
        programs_ = test::expand_all(
            test::make_pipeline_steps({.pipeline = table.pipeline, .micro_batches = 3, .tensor_ranks = 2}),
            table);
        EXPECT_EQ(check_programs(programs_), std::vector<std::string>{});
    }

    Program& rank(std::size_t index) { return programs_[index]; }

    // The rank's n-th op of this kind, or of this micro-batch among them.
    Op& op(std::size_t rank, OpKind kind, std::int32_t micro_batch, int n = 0) {
        for (auto& op : programs_[rank].ops)
            if (op.kind == kind && op.micro_batch == micro_batch && n-- == 0) return op;
        throw std::logic_error("no such op");
    }

    // Issues ops of a rank in another order; renumbers them.
    template <class Change>
    void reorder(std::size_t rank, Change change) {
        std::vector<OpId> order;
        for (const auto& op : programs_[rank].ops) order.push_back(op.id);
        change(order);
        programs_[rank] = reordered(programs_[rank], order);
    }
    void swap_in_order(std::size_t rank, OpId a, OpId b) {
        reorder(rank, [&](std::vector<OpId>& order) {
            std::swap(order[static_cast<std::size_t>(a.value())], order[static_cast<std::size_t>(b.value())]);
        });
    }
    void move_to(std::size_t rank, OpId what, OpId before) {
        reorder(rank, [&](std::vector<OpId>& order) {
            std::erase(order, what);
            order.insert(std::ranges::find(order, before), what);
        });
    }
    void erase(std::size_t rank, OpId what) {
        auto& ops = programs_[rank].ops;
        for (auto& op : ops) std::erase(op.after, what);
        ops.erase(ops.begin() + what.value());
        for (auto& op : ops) {
            if (op.id > what) op.id = OpId(op.id.value() - 1);
            for (auto& earlier : op.after)
                if (earlier > what) earlier = OpId(earlier.value() - 1);
        }
        reorder(rank, [](std::vector<OpId>&) {});  // counts messages and collectives anew
    }
    void insert_copy(std::size_t rank, const Op& original, std::size_t place) {
        auto& ops = programs_[rank].ops;
        const auto renumber = [&](OpId& id) {
            id = OpId(id.value() + (id.value() >= static_cast<std::int32_t>(place)));
        };
        auto copy = original;
        copy.after.clear();
        for (auto& op : ops) {
            renumber(op.id);
            for (auto& earlier : op.after) renumber(earlier);
        }
        copy.id = OpId(static_cast<std::int32_t>(place));
        ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(place), copy);
        reorder(rank, [](std::vector<OpId>&) {});
    }

    void expect_found(const std::vector<std::string>& parts) const {
        expect_found(parts, check_programs(programs_));
    }
    // Some problem's line has all parts.
    static void expect_found(const std::vector<std::string>& parts,
                             const std::vector<std::string>& problems) {
        const bool found = std::ranges::any_of(problems, [&](const std::string& problem) {
            return std::ranges::all_of(
                parts, [&](const std::string& part) { return problem.find(part) != std::string::npos; });
        });
        EXPECT_TRUE(found) << fmt::format("not all of {} in one of:\n{}", parts, fmt::join(problems, "\n"));
    }

    std::vector<Program> programs_;
};

TEST_F(PlantedFault, two_receives_swapped) {
    for (const int micro_batch : {0, 1}) op(2, OpKind::receive, micro_batch).after.clear();
    swap_in_order(2, op(2, OpKind::receive, 0).id, op(2, OpKind::receive, 1).id);
    expect_found({"rank 2: op", "receive (layer 2, micro-batch 1)",
                  "meets rank 0: op 9 send (layer 1, micro-batch 0)", "of another micro-batch"});
}

TEST_F(PlantedFault, two_receives_swapped_with_their_labels) {
    auto &first = op(2, OpKind::receive, 0), &second = op(2, OpKind::receive, 1);
    std::swap(first.writes, second.writes);
    expect_found({"rank 2: op", "reads mb0.2.received, which no op before it writes"});
}

TEST_F(PlantedFault, a_send_without_a_receive) {
    insert_copy(1, op(1, OpKind::send, 2), rank(1).ops.size());
    expect_found({"rank 1: op", "send (layer 1, micro-batch 2)", "rank 3 has no receive number 3 from here"});
}

TEST_F(PlantedFault, a_receive_without_a_send) {
    erase(0, op(0, OpKind::send, 2).id);
    expect_found({"rank 2: op", "receive (layer 2, micro-batch 2)", "rank 0 has no send number 2 to here"});
    // It would wait for ever, and so would what needs it; that is no cycle.
    for (const auto& problem : check_programs(programs_))
        EXPECT_EQ(problem.find("wait for one another"), std::string::npos) << problem;
}

TEST_F(PlantedFault, a_message_of_the_wrong_size) {
    auto& received = rank(2).values[static_cast<std::size_t>(op(2, OpKind::receive, 1).writes[0].value())];
    received.shape = {8, 5};
    expect_found({"rank 2: op", "receive (layer 2, micro-batch 1)", "meets rank 0: op",
                  "send (layer 1, micro-batch 1)", "which sends 32 f32, not 40 f32"});
}

TEST_F(PlantedFault, a_message_of_another_dtype) {
    rank(3).values[static_cast<std::size_t>(op(3, OpKind::receive, 0).writes[0].value())].dtype = DType::f64;
    expect_found({"rank 3: op", "receive", "which sends 32 f32, not 32 f64"});
}

TEST_F(PlantedFault, a_message_to_the_wrong_rank) {
    std::get<PointToPointAttributes>(op(0, OpKind::send, 0).attributes).peer = Rank(3);
    expect_found({"rank 0: op 9 send (layer 1, micro-batch 0)", "rank 3 has no receive number 0 from here"});
    std::get<PointToPointAttributes>(op(0, OpKind::send, 0).attributes).peer = Rank(7);
    expect_found({"rank 0: op 9 send (layer 1, micro-batch 0)", "there is no other rank 7"});
}

TEST_F(PlantedFault, a_message_with_the_wrong_number) {
    std::get<PointToPointAttributes>(op(0, OpKind::send, 1).attributes).sequence = 0;
    expect_found({"rank 0: op", "send (layer 1, micro-batch 1)", "is number 0 of those to rank 2"});
}

TEST_F(PlantedFault, collectives_crossed_within_a_group) {
    // Rank 1 gathers micro-batch 1 before micro-batch 0 is scattered.
    move_to(1, op(1, OpKind::embedding, 1).id, op(1, OpKind::reduce_scatter, 0).id);
    move_to(1, op(1, OpKind::all_gather, 1).id, op(1, OpKind::reduce_scatter, 0).id);
    expect_found({"rank 1: op", "all_gather (layer 0, micro-batch 1)",
                  "meets rank 0: op 4 reduce_scatter (layer 0, micro-batch 0)"});
}

TEST_F(PlantedFault, equal_collectives_of_two_micro_batches_crossed) {
    move_to(1, op(1, OpKind::embedding, 1).id, op(1, OpKind::all_gather, 0).id);
    move_to(1, op(1, OpKind::all_gather, 1).id, op(1, OpKind::all_gather, 0).id);
    expect_found({"rank 1: op", "all_gather (layer 0, micro-batch 1)", "of another micro-batch",
                  "rank 0: op 1 all_gather (layer 0, micro-batch 0)"});
}

TEST_F(PlantedFault, collectives_of_two_groups_crossed) {
    for (auto& program : programs_) {
        if (program.rank > Rank(1)) continue;
        program.groups["pair"] = {Rank(0), Rank(1)};
        const auto norm2 = program.find("norm2");
        const auto id = OpId(static_cast<std::int32_t>(program.ops.size()));
        program.ops.push_back({.id = id,
                               .kind = OpKind::all_reduce,
                               .attributes = CollectiveAttributes{"pair", 0},
                               .reads = {norm2},
                               .writes = {norm2},
                               .resource = Resource::link_inter});
    }
    EXPECT_EQ(check_programs(programs_), std::vector<std::string>{});
    const auto world = std::ranges::find_if(rank(1).ops, [](const Op& op) {
                           return op.resource == Resource::link_inter;
                       })->id;
    move_to(1, rank(1).ops.back().id, world);
    expect_found({"wait for one another", "rank 0: op", "all_reduce", "rank 1: op"});
}

TEST_F(PlantedFault, a_collective_of_another_group) {
    std::get<CollectiveAttributes>(op(0, OpKind::all_gather, 0).attributes).group = "world";
    expect_found({"rank 0: op 1 all_gather (layer 0, micro-batch 0)", "of group world"});
}

TEST_F(PlantedFault, a_group_that_lacks_a_member_on_one_rank) {
    rank(2).groups["world"] = {Rank(0), Rank(1), Rank(2)};
    expect_found({"rank 0:", "rank 2 doesn't have the same group world"});
}

TEST_F(PlantedFault, accumulation_out_of_micro_batch_order) {
    const auto first = op(3, OpKind::linear_backward_weight, 1).id;
    const auto second = op(3, OpKind::linear_backward_weight, 2).id;
    // Micro-batch 1's, held back until behind micro-batch 2's.
    reorder(3, [&](std::vector<OpId>& order) {
        std::erase(order, first);
        order.insert(std::ranges::find(order, second) + 1, first);
    });
    expect_found(
        {"rank 3: op", "linear_backward_weight (micro-batch 1)", "micro-batches must come in order"});
}

TEST_F(PlantedFault, a_micro_batch_counted_twice) {
    const auto& original = op(2, OpKind::linear_backward_weight, 1);
    insert_copy(2, original, static_cast<std::size_t>(original.id.value()) + 1);
    expect_found({"rank 2: op", "linear_backward_weight (micro-batch 1)", "does again what op"});
}

TEST_F(PlantedFault, a_read_before_its_message_has_come) {
    const auto receive = op(2, OpKind::receive, 1).id;
    const auto gather = op(2, OpKind::all_gather, 1).id;
    swap_in_order(2, receive, gather);
    expect_found({"rank 2: op", "all_gather (layer 2, micro-batch 1)",
                  "reads mb1.2.received, which no op before it writes"});
}

TEST_F(PlantedFault, ranks_that_both_want_to_receive_first) {
    // Stage 0 would send micro-batch 0 only when it has the gradient that stage 1 makes from it.
    op(0, OpKind::receive, 0).after.clear();
    move_to(0, op(0, OpKind::receive, 0).id, op(0, OpKind::send, 0).id);
    op(0, OpKind::send, 0).after = {op(0, OpKind::receive, 0).id};
    expect_found({"wait for one another", "rank 0: op 10 send (layer 1, micro-batch 0)",
                  "rank 2: op 0 receive (layer 2, micro-batch 0)", "rank 2: op",
                  "send (layer 2, micro-batch 0)", "rank 0: op 9 receive (layer 1, micro-batch 0)"});
}

TEST_F(PlantedFault, receives_that_serial_execution_would_wait_for_before_it_sends) {
    // Before the first forward, instead of behind the second.
    auto& receive = op(0, OpKind::receive, 0);
    receive.after.clear();
    move_to(0, receive.id, OpId(0));
    expect_found(
        {"one op at a time", "wait for one another", "rank 0: op 0 receive (layer 1, micro-batch 0)"});
}

TEST_F(PlantedFault, an_activation_freed_too_early) {
    auto& program = rank(0);
    auto placement = place(program);
    EXPECT_EQ(check_placement(program, placement), std::vector<std::string>{});
    // The next micro-batch's product over what backward still needs.
    const auto needed = static_cast<std::size_t>(program.find("mb0.0.product").value());
    const auto next = static_cast<std::size_t>(program.find("mb1.0.product").value());
    placement.value_offset_bytes[next] = placement.value_offset_bytes[needed];
    expect_found({"mb0.0.product of op 2 linear (layer 0, micro-batch 0)", "mb1.0.product of op",
                  "neither surely ends before the other"},
                 check_placement(program, placement));
}

TEST_F(PlantedFault, a_wait_left_out_in_front_of_a_receive) {
    auto& program = rank(2);
    const auto placement = place(program);
    EXPECT_EQ(check_placement(program, placement), std::vector<std::string>{});
    for (auto& op : program.ops)
        if (op.kind == OpKind::receive) op.after.clear();
    expect_found({"rank 2: ", ".received of op", "receive (layer 2, micro-batch 2)",
                  "neither surely ends before the other"},
                 check_placement(program, placement));
}

TEST_F(PlantedFault, a_sent_value_overwritten_while_it_is_under_way) {
    auto& program = rank(0);
    auto placement = place(program);
    const auto sent = static_cast<std::size_t>(program.find("mb1.1.scattered").value());
    const auto next = static_cast<std::size_t>(program.find("mb2.1.product").value());
    placement.value_offset_bytes[next] = placement.value_offset_bytes[sent];
    expect_found({"rank 0: ", "mb1.1.scattered of op", "mb2.1.product of op", "neither surely ends"},
                 check_placement(program, placement));
}

}  // namespace
}  // namespace atl
