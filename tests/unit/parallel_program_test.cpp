// Programs of a model spread over ranks: they pass the checker in every mix, boxes cover each tensor as the layout
// promises, collectives and messages are those the shape calls for, and nothing is counted or updated twice.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/check.h"
#include "layout/cells.h"
#include "model/model_layout.h"
#include "model/training_program.h"
#include "program/checker.h"
#include "support/parallel_cases.h"

namespace atl {
namespace {

const std::vector<ModelShape>& shapes() {
    static const std::vector<ModelShape> all = {test::odd_llama(), test::odd_llama(true), test::odd_gpt2()};
    return all;
}

std::vector<Program> training_programs(const ModelShape& shape, const ParallelShape& parallel) {
    std::vector<Program> programs;
    for (std::int32_t rank = 0; rank < parallel.ranks(); ++rank)
        programs.push_back(
            make_training_program(shape, {.micro_batches = 2, .rank = Rank(rank), .parallel = parallel}));
    return programs;
}

void expect_sound(std::vector<Program>& programs) {
    const auto problems = check_programs(programs);
    EXPECT_TRUE(problems.empty()) << fmt::format("{}", fmt::join(problems, "\n"));
    for (auto& program : programs) {
        const auto placement = place(program);
        const auto collisions = check_placement(program, placement);
        EXPECT_TRUE(collisions.empty()) << fmt::format("{}", fmt::join(collisions, "\n"));
    }
}

TEST(ParallelProgram, passes_the_checker_in_every_mix_for_training_and_evaluation) {
    for (const auto& shape : shapes())
        for (const auto& parallel : test::parallel_shapes()) {
            SCOPED_TRACE(test::to_string(parallel));
            auto training = training_programs(shape, parallel);
            expect_sound(training);
            std::vector<Program> evaluation;
            for (std::int32_t rank = 0; rank < parallel.ranks(); ++rank)
                evaluation.push_back(make_evaluation_program(
                    shape, {.micro_batches = 2, .rank = Rank(rank), .parallel = parallel}));
            expect_sound(evaluation);
        }
}

std::vector<std::string> sorted_boxes(const Program& program, const std::string& prefix) {
    std::vector<std::string> boxes;
    for (const auto& value : program.values)
        if (value.box && (prefix.empty() ? value.role == Role::parameter : value.name.starts_with(prefix)))
            boxes.push_back(value.box->tensor + atl::to_string(value.box->box));
    std::ranges::sort(boxes);
    return boxes;
}

std::vector<std::string> sorted_boxes(const Layout& layout, std::size_t rank) {
    std::vector<std::string> boxes;
    for (const auto& [tensor, held] : layout)
        for (const auto& box : held.rank_boxes[rank]) boxes.push_back(tensor + atl::to_string(box));
    std::ranges::sort(boxes);
    return boxes;
}

TEST(ModelLayout, names_the_boxes_that_the_programs_hold_and_covers_every_tensor) {
    for (const auto& shape : shapes())
        for (const auto& parallel : test::parallel_shapes()) {
            SCOPED_TRACE(test::to_string(parallel));
            const auto parameters = parameter_layout(shape, parallel);
            const auto moments = moment_layout(shape, parallel);
            const auto programs = training_programs(shape, parallel);
            for (std::size_t rank = 0; rank < programs.size(); ++rank) {
                EXPECT_EQ(sorted_boxes(programs[rank], ""), sorted_boxes(parameters, rank));
                EXPECT_EQ(sorted_boxes(programs[rank], "grad/"), sorted_boxes(parameters, rank));
                EXPECT_EQ(sorted_boxes(programs[rank], "m/"), sorted_boxes(moments, rank));
                EXPECT_EQ(sorted_boxes(programs[rank], "v/"), sorted_boxes(moments, rank));
            }
            for (const auto& layout : {parameters, moments}) {
                EXPECT_EQ(layout.size(), model_tensors(shape).size());
                for (const auto& tensor : model_tensors(shape)) {
                    std::int64_t elements = 0;
                    for (const auto& cell : cut_into_cells(layout.at(tensor.name)))
                        elements += cell.box.elements();
                    EXPECT_EQ(elements, element_count(tensor.shape)) << tensor.name;
                }
            }
        }
}

TEST(ModelLayout, splits_the_moments_of_matrices_over_all_their_holders) {
    const ParallelShape parallel{.tp = 4, .dp = 2, .zero = true};
    const auto moments = moment_layout(test::odd_llama(), parallel);
    for (const auto& [tensor, layout] : moments)
        for (const auto& cell : cut_into_cells(layout))
            EXPECT_EQ(cell.holders.size(), layout.shape.size() == 2 ? 1u : 8u) << tensor;
}

TEST(ModelLayout, shares_key_heads_among_more_ranks_than_there_are) {
    const auto shape = test::odd_llama();  // four query heads over two
    const auto of = [&](std::int32_t tp, std::int32_t rank) {
        const auto here = rank_shape(shape, {.tp = tp}, Rank(rank));
        return std::pair(here.heads, here.kv_heads);
    };
    EXPECT_EQ(of(4, 0), std::pair(Range(0, 1), Range(0, 1)));
    EXPECT_EQ(of(4, 1), std::pair(Range(1, 2), Range(0, 1)));
    EXPECT_EQ(of(4, 3), std::pair(Range(3, 4), Range(1, 2)));
    EXPECT_EQ(of(3, 0), std::pair(Range(0, 2), Range(0, 1)));
    EXPECT_EQ(of(3, 1), std::pair(Range(2, 3), Range(1, 2)));
    EXPECT_EQ(of(2, 1), std::pair(Range(2, 4), Range(1, 2)));
    const auto keys = parameter_layout(shape, {.tp = 4}).at("model.layers.0.self_attn.k_proj.weight");
    const auto cells = cut_into_cells(keys);
    ASSERT_EQ(cells.size(), 2u);
    EXPECT_EQ(cells[0].holders, (std::vector{Rank(0), Rank(1)}));
    EXPECT_EQ(cells[1].holders, (std::vector{Rank(2), Rank(3)}));
}

// Collectives of each kind and group among the ops of a layer and micro-batch.
std::map<std::string, int> collectives_of_layer(const Program& program, std::int32_t layer) {
    std::map<std::string, int> counts;
    for (const auto& op : program.ops)
        if (op.layer == layer && op.micro_batch == 0 && is_collective(op.kind))
            ++counts[fmt::format("{} {}", name(op.kind),
                                 std::get<CollectiveAttributes>(op.attributes).group)];
    return counts;
}

TEST(ParallelProgram, a_cut_layer_gathers_and_scatters_twice_each_way) {
    const auto programs = training_programs(test::odd_llama(), {.tp = 2});
    EXPECT_EQ(collectives_of_layer(programs[0], 1),
              (std::map<std::string, int>{{"all_gather tp", 4}, {"reduce_scatter tp", 4}}));
    EXPECT_TRUE(collectives_of_layer(training_programs(test::odd_llama(), {.pp = 2})[0], 1).empty());
}

TEST(ParallelProgram, messages_pass_only_where_a_boundary_lies_between_ranks) {
    const auto messages = [](const Program& program) {
        std::map<std::string, int> counts;
        for (const auto& op : program.ops)
            if (is_point_to_point(op.kind))
                ++counts[fmt::format("{} {}", name(op.kind),
                                     std::get<PointToPointAttributes>(op.attributes).peer)];
        return counts;
    };
    using Counts = std::map<std::string, int>;
    // Two micro-batches; a boundary is crossed forwards and backwards.
    const auto line = training_programs(test::odd_llama(), {.tp = 2, .pp = 2});
    EXPECT_EQ(messages(line[1]), (Counts{{"receive 3", 2}, {"send 3", 2}}));
    // Stages 0 1 1 0: the middle of the fold stays on its rank.
    const auto fold =
        training_programs(test::odd_llama(), {.pp = 2, .chunks = 2, .placement = StagePlacement::fold});
    EXPECT_EQ(messages(fold[0]), (Counts{{"receive 1", 4}, {"send 1", 4}}));
    EXPECT_EQ(messages(fold[1]), (Counts{{"receive 0", 4}, {"send 0", 4}}));
}

TEST(ParallelProgram, sums_of_other_groups_than_tensor_parallel_ride_their_own_link) {
    for (const auto& program : training_programs(test::odd_gpt2(), {.tp = 2, .pp = 2, .dp = 2}))
        for (const auto& op : program.ops)
            if (const auto* attributes = std::get_if<CollectiveAttributes>(&op.attributes)) {
                const bool is_tp = attributes->group == "tp";
                EXPECT_EQ(op.resource, is_tp ? Resource::link_intra : Resource::link_inter);
            }
}

// Over all ranks the norm's reads are each logical element exactly once.
TEST(ParallelProgram, counts_every_gradient_once_in_the_norm) {
    for (const auto& shape : shapes())
        for (const auto& parallel : test::parallel_shapes()) {
            if (parallel.tp == 1 && parallel.pp == 1 && !parallel.zero) continue;  // each rank counts all
            SCOPED_TRACE(test::to_string(parallel));
            std::int64_t counted = 0;
            for (const auto& program : training_programs(shape, parallel))
                for (const auto& op : program.ops)
                    if (op.kind == OpKind::square_sum)
                        for (const auto id : op.reads) counted += element_count(program.value(id).shape);
            EXPECT_EQ(counted, parameter_count(shape));
        }
}

// Ranks that share no key head compute nothing twice: together they do the work of one, whatever the mix.
TEST(ParallelProgram, the_ranks_of_a_replica_share_the_flops_of_a_step) {
    const auto flops_of = [](const std::vector<Program>& programs) {
        double flops = 0;
        for (const auto& program : programs)
            for (const auto& op : program.ops) flops += op.flops;
        return flops;
    };
    for (const auto& shape : shapes()) {
        const auto alone = flops_of(training_programs(shape, {}));
        for (const auto& parallel : test::parallel_shapes())
            if (parallel.tp <= shape.kv_heads) {
                SCOPED_TRACE(test::to_string(parallel));
                EXPECT_NEAR(flops_of(training_programs(shape, parallel)) / (parallel.dp * alone), 1, 1e-12);
            }
    }
}

TEST(ParallelProgram, collectives_move_what_a_ring_moves_and_messages_all_they_hold) {
    const auto shape = test::odd_llama();
    const std::int64_t stream_bytes = shape.context * shape.hidden * 4;
    const auto programs = training_programs(shape, {.tp = 3, .pp = 2});
    for (const auto& op : programs[4].ops) {
        if (op.micro_batch < 0) continue;
        if (op.kind == OpKind::all_gather || op.kind == OpKind::reduce_scatter) {
            EXPECT_EQ(op.bytes, 2 * stream_bytes / 3);
        } else if (op.kind == OpKind::all_reduce_max) {
            EXPECT_EQ(op.bytes, 2 * 2 * shape.context * 4 / 3);
        } else if (is_point_to_point(op.kind)) {
            EXPECT_EQ(op.bytes, stream_bytes / 3);
        }
    }
}

TEST(ParallelProgram, splits_the_updates_of_matrices_and_gathers_the_weights) {
    const ParallelShape parallel{.dp = 2, .zero = true};
    std::int64_t updated_matrices = 0, moments = 0;
    for (const auto& program : training_programs(test::odd_llama(), parallel)) {
        int gathers = 0, updates = 0;
        for (const auto& op : program.ops) {
            const auto& first = op.writes.empty() ? Value{} : program.value(op.writes[0]);
            gathers += op.kind == OpKind::all_gather;
            if (op.kind != OpKind::adamw) continue;
            moments += element_count(program.value(op.writes[1]).shape);
            if (first.shape.size() != 2) continue;
            ++updates;
            updated_matrices += element_count(first.shape);
        }
        EXPECT_EQ(gathers, updates);
    }
    const auto vectors = 9 * 16;  // norms, on both ranks
    EXPECT_EQ(updated_matrices, parameter_count(test::odd_llama()) - vectors);
    EXPECT_EQ(moments, parameter_count(test::odd_llama()) + vectors);
}

TEST(PackedPieces, give_rows_of_the_stack_and_join_neighbours) {
    const TensorSpec a{"a", {4, 3}}, b{"b", {6, 3}};
    const PackedPieces stack{"both", {{a, Box::whole(a.shape), "a"}, {b, Box::whole(b.shape), "b"}}};
    EXPECT_EQ(stack.shape(), (Shape{10, 3}));
    const auto boxes = [](const PackedPieces& packed) {
        std::vector<std::string> boxes;
        for (const auto& piece : packed.pieces)
            boxes.push_back(piece.tensor.name + atl::to_string(piece.box));
        return boxes;
    };
    using Boxes = std::vector<std::string>;
    EXPECT_EQ(boxes(select_rows(stack, {{2, 6}})), (Boxes{"a[2:4,0:3]", "b[0:2,0:3]"}));
    EXPECT_EQ(boxes(select_rows(stack, {{4, 5}, {5, 7}, {8, 9}})), (Boxes{"b[0:3,0:3]", "b[4:5,0:3]"}));
    EXPECT_EQ(boxes(select_rows(select_rows(stack, {{2, 6}}), {{1, 3}})),
              (Boxes{"a[3:4,0:3]", "b[0:1,0:3]"}));
    EXPECT_EQ(boxes(select_columns(stack, {1, 2})), (Boxes{"a[0:4,1:2]", "b[0:6,1:2]"}));
    EXPECT_EQ(select_rows(stack, {{3, 3}}).rows(), 0);
    EXPECT_THROW(select_rows(stack, {{8, 11}}), CheckError);
}

TEST(ParallelShape, names_what_can_not_be_cut) {
    const auto shape = test::odd_llama();
    const auto first = [&](const ParallelShape& parallel) {
        const auto found = problems(shape, parallel, shape.context);
        return found.empty() ? std::string() : found.front();
    };
    EXPECT_EQ(first({.tp = 4, .pp = 4, .dp = 3}), "");
    EXPECT_EQ(first({.tp = 5}), "tp 5 is more than the 4 heads");
    EXPECT_EQ(first({.dp = 0}), "dp is 0, less than 1");
    EXPECT_EQ(first({.pp = 2, .placement = StagePlacement::fold}), "chunks is 1; a folded pipeline has 2");
    EXPECT_EQ(first({.pp = 2, .stage_layers = {1, 2, 1}}),
              "stage_layers names 3 stages, pp 2 with chunks 1 has 2");
    EXPECT_EQ(first({.pp = 2, .stage_layers = {1, 2}}), "stage_layers add up to 3, the model has 4 layers");
    EXPECT_EQ(first({.pp = 3, .stage_layers = {2, 0, 2}}), "stage 1 of 3 has 0 layers");
    EXPECT_THROW(make_training_program(shape, {.parallel = {.tp = 5}}), CheckError);
    EXPECT_THROW(make_training_program(shape, {.rank = Rank(2), .parallel = {.tp = 2}}), CheckError);
}

}  // namespace
}  // namespace atl
