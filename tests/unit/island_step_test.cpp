// Simulated steps of islands: orders for comparison, exchanges put in, stand-in ranks, shares and laws of overlap.
#include <gtest/gtest.h>

#include <algorithm>

#include "program/schedule_evaluation.h"
#include "simulator/blocking_program.h"
#include "simulator/fold_schedules.h"
#include "simulator/island_step.h"
#include "simulator/schedule_sweep.h"

namespace atl {
namespace {

TEST(FoldSchedules, are_legal_for_any_number_of_ranks_and_micro_batches) {
    for (const std::int32_t ranks : {1, 2, 3, 4, 8})
        for (const std::int32_t micro_batches : {1, 2, 3, 5, 8, 16, 17})
            for (const auto& table :
                 {w_schedule(ranks, micro_batches), zero_bubble_v_schedule(ranks, micro_batches),
                  side_by_side_schedule(ranks, micro_batches)}) {
                const auto problems = check_table(table);
                EXPECT_TRUE(problems.empty())
                    << ranks << " ranks, " << micro_batches << ": " << problems.front();
            }
}

// Chunks of half a rank: F 1, I 1, W 1; so 1F1B's are twice that.
double speedup_of_w(std::int32_t ranks, std::int32_t micro_batches, double pair_gain) {
    const WorkCosts half{.pair_gain = pair_gain}, whole{2, 2, 2};
    const auto plain = make_schedule_table({ScheduleKind::one_f_one_b, ranks, micro_batches});
    return evaluate(plain, whole).step_seconds /
           evaluate(w_schedule(ranks, micro_batches), half).step_seconds;
}

TEST(FoldSchedules, w_without_gain_is_1f1b_and_gains_what_its_paired_share_allows) {
    struct Expected {
        std::int32_t ranks, micro_batches;
        double at_1_2, at_1_4;
    };
    for (const auto& [ranks, micro_batches, at_1_2, at_1_4] : {Expected{1, 4, 1.14, 1.27},
                                                               {1, 16, 1.19, 1.37},
                                                               {2, 8, 1.15, 1.29},
                                                               {4, 8, 1.12, 1.22},
                                                               {4, 16, 1.15, 1.29},
                                                               {4, 32, 1.17, 1.34},
                                                               {8, 32, 1.15, 1.29}}) {
        EXPECT_DOUBLE_EQ(speedup_of_w(ranks, micro_batches, 1), 1) << ranks << ", " << micro_batches;
        EXPECT_NEAR(speedup_of_w(ranks, micro_batches, 1.2), at_1_2, 0.011) << ranks << ", " << micro_batches;
        EXPECT_NEAR(speedup_of_w(ranks, micro_batches, 1.4), at_1_4, 0.011) << ranks << ", " << micro_batches;
    }
}

TEST(FoldSchedules, zero_bubble_v_beats_1f1b_in_its_memory) {
    for (const std::int32_t ranks : {2, 4, 8}) {
        const auto table = zero_bubble_v_schedule(ranks, 4 * ranks);
        const auto plain = make_schedule_table({ScheduleKind::one_f_one_b, ranks, 4 * ranks});
        EXPECT_LE(std::ranges::max(peak_pieces(table)), 2 * ranks);
        EXPECT_LT(evaluate(table, {}).step_seconds, evaluate(plain, {2, 2, 2}).step_seconds);
    }
}

IslandStep small_step() {
    return {.shape = {.kind = ModelKind::llama,
                      .layers = 8,
                      .hidden = 1024,
                      .heads = 8,
                      .kv_heads = 8,
                      .head_width = 128,
                      .ffn = 4096,
                      .vocab = 4096,
                      .context = 2048},
            .tp = 2,
            .pp = 2,
            .context = 1024,
            .micro_batches = 4};
}

const MachineRates& rates() {
    static const auto result = rates_of(cluster_from_name("a40"), 2);
    return result;
}

TEST(IslandStep, one_rank_of_a_group_stands_for_all_of_it) {
    auto step = small_step();
    step.dp = 2;
    for (const auto& table : {make_schedule_table({ScheduleKind::strands, 2, 4}), w_schedule(2, 4)}) {
        step.all_ranks = false;
        auto few = make_step_work(step, table, rates());
        step.all_ranks = true;
        auto all = make_step_work(step, table, rates());
        EXPECT_EQ(few.programs.size(), 2u);
        EXPECT_EQ(all.programs.size(), 8u);
        for (const auto mode : {ExecutionMode::event, ExecutionMode::barrier})
            EXPECT_NEAR(step_seconds(few, mode, overlap_model_of(0.7)),
                        step_seconds(all, mode, overlap_model_of(0.7)), 1e-9);
    }
}

std::size_t exchanges(const StepWork& work, const std::string& group) {
    std::size_t count = 0;
    for (const auto& program : work.programs)
        for (const auto& op : program.ops)
            if (const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes))
                count += collective->group == group;
    return count;
}

TEST(IslandStep, context_and_expert_parallel_layers_exchange_what_they_must) {
    const auto table = make_schedule_table({ScheduleKind::one_f_one_b, 2, 4});
    auto step = small_step();
    auto alone = make_step_work(step, table, rates());
    const double alone_seconds = step_seconds(alone, ExecutionMode::serial);
    step.cp = 2;
    const auto parts = make_step_work(step, table, rates());
    EXPECT_EQ(exchanges(parts, "cp"), 8u * 4 * 3);  // before attention, before and behind its backward
    step.cp = 1;
    step.ep = 4;
    step.active_experts = 2;
    auto experts = make_step_work(step, table, rates());
    EXPECT_EQ(exchanges(experts, "ep"), 8u * 4 * 4);
    EXPECT_GT(step_seconds(experts, ExecutionMode::serial), alone_seconds);
}

TEST(IslandStep, attention_of_a_part_of_a_sequence_sees_the_whole_of_it) {
    auto step = small_step();
    step.tp = step.pp = 1;
    const auto attention_flops = [&](std::int32_t cp) {
        step.cp = cp;
        const auto work = make_step_work(step, make_schedule_table({ScheduleKind::serial, 1, 4}), rates());
        double flops = 0;
        for (const auto& op : work.programs[0].ops)
            if (op.kind == OpKind::attention) flops += op.flops;
        return flops;
    };
    EXPECT_NEAR(attention_flops(4), attention_flops(1) / 4, 0.01 * attention_flops(4));
}

// Ops of 1 s each, but for hops that take `hop_seconds` each.
double seconds_of_ring(std::int32_t cp, double hop_seconds) {
    auto step = small_step();
    step.tp = step.pp = 1;
    step.micro_batches = 1;
    step.cp = cp;
    auto work = make_step_work(step, make_schedule_table({ScheduleKind::serial, 1, 1}), rates());
    for (auto& program : work.programs) program = with_blocking_communication(std::move(program));
    for (const auto& op : work.programs[0].ops)
        work.seconds[0][static_cast<std::size_t>(op.id.value())] = is_collective(op.kind) ? hop_seconds : 1;
    return step_seconds(work, ExecutionMode::event);
}

TEST(IslandStep, a_hop_of_the_ring_hides_behind_the_part_that_is_there) {
    constexpr std::int32_t kLayers = 8;
    for (const std::int32_t cp : {2, 4}) {
        const double hidden = seconds_of_ring(cp, 0);
        EXPECT_NEAR(seconds_of_ring(cp, 0.5), hidden, 1e-9) << cp;
        // Forward waits for each hop 2 s beyond the part beside it. Backward's link carries keys and values and gradients
        // in turn and is never idle; of the parts, what waits for the last hop stays.
        const double longer = seconds_of_ring(cp, 3) - hidden;
        EXPECT_NEAR(longer, kLayers * ((cp - 1) * 2.0 + (2 * (cp - 1) * 3.0 - cp)), 1e-9) << cp;
    }
}

TEST(IslandStep, groups_that_fit_in_a_node_exchange_by_its_links) {
    auto step = small_step();
    step.cp = 2;
    for (const auto& [node, resource] : {std::pair{8, Resource::link_intra}, {2, Resource::link_inter}}) {
        step.ranks_per_node = node;
        const auto work =
            make_step_work(step, make_schedule_table({ScheduleKind::one_f_one_b, 2, 4}), rates());
        for (const auto& op : work.programs[0].ops) {
            const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes);
            if (collective != nullptr && collective->group == "cp") {
                EXPECT_EQ(op.resource, resource) << node;
            }
        }
    }
}

TEST(BlockingProgram, lets_only_the_scatter_before_a_weight_gradient_run_beside_computation) {
    ProgramBuilder builder;
    builder.add_group("tp", {Rank(0), Rank(1)});
    const auto value = [&](const std::string& name) {
        return builder.add(Value{.name = name, .shape = {4}});
    };
    const auto partial = value("partial"), own = value("own"), earlier = value("earlier"),
               weight = value("weight"), norm = value("norm"), whole = value("whole"),
               product = value("product");
    const auto collective = [&](OpKind kind, ValueId read, ValueId written) {
        builder.add(Op{.kind = kind,
                       .attributes = CollectiveAttributes{"tp", 0},
                       .reads = {read},
                       .writes = {written},
                       .resource = Resource::link_intra});
    };
    builder.add(Op{.kind = OpKind::linear_backward_input, .writes = {partial}});
    collective(OpKind::reduce_scatter, partial, own);
    builder.add(
        Op{.kind = OpKind::linear_backward_weight, .writes = {earlier}});  // another layer's, held back
    builder.add(Op{.kind = OpKind::linear_backward_weight, .writes = {weight}});
    builder.add(Op{.kind = OpKind::rms_norm_backward, .reads = {own}, .writes = {norm}});
    collective(OpKind::all_gather, norm, whole);
    builder.add(Op{.kind = OpKind::linear, .writes = {product}});  // could run beside the gather
    const std::vector<Program> programs = {with_blocking_communication(builder.take())};
    const std::vector<std::vector<double>> seconds = {{2, 3, 6, 2, 1, 4, 5}};
    EXPECT_DOUBLE_EQ(execute_virtually(programs, seconds).step_seconds, 2 + 3 + 6 + 1 + 4 + 5);
}

TEST(IslandStep, a_share_of_communication_is_set_exactly_and_bounds_every_order) {
    auto work = make_step_work(small_step(), make_schedule_table({ScheduleKind::strands, 2, 4}), rates());
    for (const double share : {0.1, 0.5, 0.8}) {
        set_communication_share(work, share);
        const double computing = compute_seconds(work), communicating = communication_seconds(work);
        EXPECT_NEAR(communicating / (computing + communicating), share, 1e-12);
        EXPECT_GE(step_seconds(work, ExecutionMode::event), computing);
    }
}

TEST(ScheduleSweep, more_overlap_is_never_slower_and_ops_that_harm_each_other_make_pairs_lose) {
    auto step = small_step();
    ScheduleSweep sweep(step, rates());
    SweepPoint point{.communication_share = 0.4, .pipeline_ranks = 2, .micro_batches = 8};
    double last_seconds = 1e9;
    for (const double level : {0.0, 0.5, 1.0}) {
        point.overlap_level = level;
        const double seconds = sweep.seconds(point).back();
        EXPECT_LE(seconds, last_seconds + 1e-12) << level;
        last_seconds = seconds;
    }
    const double best_gain = sweep.gain(point);
    point.overlap_level = -0.3;
    EXPECT_LT(sweep.gain(point), std::min(1.0, best_gain));
}

}  // namespace
}  // namespace atl
