// Programs of whole models: they pass the checker for every kind, dtype and number of ranks, their memory is placed
// without waste, their flops are the model's, and packed parameters, buckets and accumulation are as documented.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "config/model_preset.h"
#include "core/check.h"
#include "model/flops.h"
#include "model/tensors.h"
#include "model/training_program.h"
#include "program/checker.h"
#include "program/cost_model.h"
#include "program/virtual_executor.h"
#include "support/small_models.h"

namespace atl {
namespace {

std::vector<Program> programs_of(const ModelShape& shape, TrainingProgramOptions options) {
    std::vector<Program> programs;
    for (std::int32_t rank = 0; rank < options.parallel.dp; ++rank) {
        options.rank = Rank(rank);
        programs.push_back(make_training_program(shape, options));
    }
    return programs;
}

void expect_sound(std::vector<Program> programs) {
    const auto problems = check_programs(programs);
    EXPECT_TRUE(problems.empty()) << fmt::format("{}", fmt::join(problems, "\n"));
    for (auto& program : programs) {
        const auto placement = place(program);
        const auto collisions = check_placement(program, placement);
        EXPECT_TRUE(collisions.empty()) << fmt::format("{}", fmt::join(collisions, "\n"));
    }
}

// Some scratch for some ops, as kernels ask for it.
std::int64_t some_scratch(const Program& program, const Op& op) {
    return op.kind == OpKind::attention_backward ? program.value(op.reads[1]).bytes() / 3 : 0;
}

TEST(TrainingProgram, passes_the_checker_for_every_kind_of_model_and_group) {
    for (const auto& shape : {test::tiny_llama(), test::tiny_gpt2()})
        for (const auto dtype : {DType::f32, DType::f64})
            for (const auto ranks : {1, 2, 3}) {
                SCOPED_TRACE(fmt::format("{} {} {}", static_cast<int>(shape.kind), name(dtype), ranks));
                expect_sound(programs_of(shape, {.sequences = 2,
                                                 .context = 16,
                                                 .micro_batches = 3,
                                                 .dtype = dtype,
                                                 .parallel = {.dp = ranks},
                                                 .bucket_bytes = 100'000,
                                                 .scratch_bytes = some_scratch}));
            }
}

TEST(TrainingProgram, with_a_tied_head_the_embedding_gradient_is_written_by_head_and_embedding) {
    auto shape = test::tiny_llama();
    shape.tied = true;
    const auto program = make_training_program(shape, {.context = 16, .micro_batches = 2});
    expect_sound({program});
    const auto gradient = program.find("grad/model.embed_tokens.weight");
    std::vector<std::string> writers;
    for (const auto& op : program.ops)
        if (std::ranges::find(op.writes, gradient) != op.writes.end())
            writers.push_back(fmt::format("{} {} {}", name(op.kind), op.micro_batch,
                                          std::get<AccumulateAttributes>(op.attributes).accumulate));
    const std::vector<std::string> expected = {"linear_backward_weight 0 false", "embedding_backward 0 true",
                                               "linear_backward_weight 1 true", "embedding_backward 1 true"};
    EXPECT_EQ(writers, expected);
}

TEST(TrainingProgram, packs_query_key_value_and_gate_up_into_one_product_each) {
    const auto program = make_training_program(test::tiny_llama(), {.context = 16});
    const auto& packed = program.value(program.find("layers.1.qkv"));
    EXPECT_EQ(packed.shape, (Shape{128, 64}));
    EXPECT_EQ(packed.box, std::nullopt);
    for (const std::string prefix : {"", "grad/", "m/", "v/"}) {
        const auto base = program.resolve(program.find(prefix + "layers.1.qkv"));
        const auto id = program.find(prefix + "model.layers.1.self_attn.v_proj.weight");
        const auto view = program.resolve(id);
        EXPECT_EQ(view.base, base.base) << prefix;
        EXPECT_EQ(view.offset_elements - base.offset_elements, (64 + 32) * 64) << prefix;
        EXPECT_EQ(program.value(id).box,
                  (LogicalBox{"model.layers.1.self_attn.v_proj.weight", Box::whole({32, 64})}));
    }
    const auto products =
        std::ranges::count_if(program.ops, [](const Op& op) { return op.kind == OpKind::linear; });
    EXPECT_EQ(products, 2 * 4 + 1);  // two layers of four, and the head
}

TEST(TrainingProgram, every_parameter_has_one_gradient_one_update_and_decays_as_its_tensors_say) {
    for (const auto& shape : {test::tiny_llama(), test::tiny_gpt2()}) {
        const auto program =
            make_training_program(shape, {.context = 16, .optimizer = AdamwAttributes{.weight_decay = 0.1}});
        std::int64_t gradient_elements = 0, updated_elements = 0;
        for (const auto& value : program.values)
            if (value.role == Role::gradient && !value.view_of)
                gradient_elements += element_count(value.shape);
        for (const auto& op : program.ops) {
            if (op.kind != OpKind::adamw) continue;
            const auto& weight = program.value(op.writes[0]);
            updated_elements += element_count(weight.shape);
            EXPECT_EQ(std::get<AdamwAttributes>(op.attributes).weight_decay,
                      weight.shape.size() == 2 ? 0.1 : 0.0);
        }
        EXPECT_EQ(gradient_elements, parameter_count(shape));
        EXPECT_EQ(updated_elements, parameter_count(shape));
    }
}

TEST(TrainingProgram, buckets_close_at_their_size_in_the_order_of_backward) {
    const auto program = make_training_program(test::tiny_llama(),
                                               {.context = 16, .parallel = {.dp = 2}, .bucket_bytes = 150'000});
    std::vector<std::string> reduced;
    std::int64_t elements = 0;
    for (const auto& op : program.ops)
        if (op.kind == OpKind::all_reduce) {
            const auto& bucket = program.value(op.reads[0]);
            reduced.push_back(bucket.name);
            elements += element_count(bucket.shape);
            EXPECT_EQ(op.resource, Resource::link_intra);
            EXPECT_EQ(op.bytes, bucket.bytes());  // two ranks: 2 · 1/2 of the bucket each
        }
    EXPECT_EQ(reduced, (std::vector<std::string>{"bucket_0", "bucket_1", "bucket_2"}));
    EXPECT_EQ(elements, parameter_count(test::tiny_llama()));
    EXPECT_EQ(program.resolve(program.find("grad/lm_head.weight")).base, program.find("bucket_0"));
    EXPECT_EQ(program.resolve(program.find("grad/model.embed_tokens.weight")).base, program.find("bucket_2"));
}

// On a link that keeps up with backward, only the last bucket's reduction is not hidden behind compute.
TEST(TrainingProgram, reductions_overlap_the_rest_of_backward) {
    const auto programs =
        programs_of(test::tiny_llama(), {.context = 64, .parallel = {.dp = 2}, .bucket_bytes = 100'000});
    const MachineRates rates{
        .flops_per_second = 1e9, .memory_bytes_per_second = 1e12, .link_intra = {.bytes_per_second = 1e9}};
    std::vector<std::vector<double>> seconds;
    for (const auto& program : programs) seconds.push_back(predicted_seconds(program, rates));
    double last_reduction_seconds = 0;
    int reductions = 0;
    for (const auto& op : programs[0].ops)
        if (op.kind == OpKind::all_reduce) {
            last_reduction_seconds = seconds[0][static_cast<std::size_t>(op.id.value())];
            ++reductions;
        }
    EXPECT_EQ(reductions, 4);
    const auto run = execute_virtually(programs, seconds);
    const double compute_seconds = run.busy_seconds[0][static_cast<std::size_t>(Resource::compute)];
    EXPECT_NEAR(run.step_seconds, compute_seconds + last_reduction_seconds, 1e-9);
}

TEST(TrainingProgram, its_flops_are_those_of_the_model_but_for_recomputed_attention) {
    for (const auto& shape : {test::tiny_llama(), test::tiny_gpt2()}) {
        const auto program =
            make_training_program(shape, {.sequences = 2, .context = 64, .micro_batches = 2});
        double forward = 0, backward = 0;
        for (const auto& op : program.ops) {
            const bool is_forward = op.kind == OpKind::linear || op.kind == OpKind::attention;
            // Five products in attention's backward, of which one recomputes the scores.
            (is_forward ? forward : backward) +=
                op.kind == OpKind::attention_backward ? op.flops * 4 / 5 : op.flops;
        }
        const double tokens = 2 * 2 * 64;
        EXPECT_DOUBLE_EQ(forward, tokens * forward_flops_per_token(shape, 64));
        EXPECT_DOUBLE_EQ(backward, tokens * backward_flops_per_token(shape, 64));
    }
}

TEST(TrainingProgram, the_embedding_touches_rows_and_not_its_table) {
    auto shape = test::tiny_llama();
    shape.vocab = 100'000;
    const auto program = make_training_program(shape, {.context = 16, .micro_batches = 2});
    std::vector<std::int64_t> bytes;
    for (const auto& op : program.ops)
        if (op.kind == OpKind::embedding || op.kind == OpKind::embedding_backward) bytes.push_back(op.bytes);
    const std::int64_t tokens = 16 * 4, rows = 16 * 64 * 4, table = 100'000 * 64 * 4;
    // Forward and backward of two micro-batches; the first backward clears the gradient.
    EXPECT_EQ(bytes, (std::vector<std::int64_t>{tokens + 2 * rows, tokens + 3 * rows + table,
                                                tokens + 2 * rows, tokens + 3 * rows}));
}

// The most bytes of activations that are alive at once in list order: no placement can do with less.
std::int64_t live_bytes(const Program& program) {
    std::vector<std::pair<std::size_t, std::size_t>> lives(program.values.size(), {SIZE_MAX, 0});
    for (std::size_t i = 0; i < program.ops.size(); ++i)
        for (const auto* ids : {&program.ops[i].reads, &program.ops[i].writes})
            for (const auto id : *ids) {
                auto& [first, last] = lives[static_cast<std::size_t>(program.resolve(id).base.value())];
                first = std::min(first, i);
                last = i;
            }
    std::vector<std::int64_t> change(program.ops.size() + 1, 0);
    for (const auto& value : program.values) {
        if (value.role != Role::activation || value.view_of) continue;
        const auto& [first, last] = lives[static_cast<std::size_t>(value.id.value())];
        change[first] += value.bytes();
        change[last + 1] -= value.bytes();
    }
    std::int64_t alive = 0, most = 0;
    for (const auto bytes : change) most = std::max(most, alive += bytes);
    return most;
}

TEST(TrainingProgram, placement_wastes_next_to_nothing_and_micro_batches_share_their_memory) {
    for (const auto* name : {"gpt2-124m", "llama-1b", "llama-8b"}) {
        const auto shape = shape_of(*model_preset(name));
        std::vector<std::int64_t> arenas;
        for (const auto micro_batches : {1, 4}) {
            auto program = make_training_program(shape, {.micro_batches = micro_batches});
            const auto placement = place(program);
            arenas.push_back(placement.arena_bytes.at({Role::activation, Space::device}));
            EXPECT_LE(static_cast<double>(arenas.back()), 1.01 * static_cast<double>(live_bytes(program)))
                << name;
        }
        EXPECT_LE(static_cast<double>(arenas[1]), 1.01 * static_cast<double>(arenas[0])) << name;
    }
}

TEST(EvaluationProgram, has_no_gradients_and_needs_memory_for_a_layer_at_a_time) {
    for (auto shape : {test::tiny_llama(), test::tiny_gpt2()}) {
        shape.layers = 8;
        auto program = make_evaluation_program(shape, {.sequences = 2, .context = 32, .micro_batches = 2});
        expect_sound({program});
        for (const auto& value : program.values) {
            EXPECT_NE(value.role, Role::gradient) << value.name;
            EXPECT_FALSE(value.name.starts_with("m/")) << value.name;
        }
        auto training = make_training_program(shape, {.sequences = 2, .context = 32});
        const ArenaId arena{Role::activation, Space::device};
        EXPECT_LT(place(program).arena_bytes.at(arena), place(training).arena_bytes.at(arena) / 4);
    }
}

TEST(TrainingProgram, plain_gradient_descent_needs_no_moments) {
    const auto program =
        make_training_program(test::tiny_llama(), {.context = 16, .optimizer = SgdAttributes{}});
    expect_sound({program});
    for (const auto& value : program.values)
        EXPECT_TRUE(value.role != Role::state || value.name == "rope_table") << value.name;
}

TEST(TrainingProgram, muon_steps_every_matrix_inside_layers_by_itself_and_keeps_one_moment_of_it) {
    for (const auto& shape : {test::tiny_llama(), test::tiny_gpt2()}) {
        const auto program = make_training_program(
            shape, {.context = 16, .optimizer = MuonOptimizer{{.weight_decay = 0.1}, {.weight_decay = 0.1}}});
        expect_sound({program});
        std::vector<Shape> stepped, hidden;
        std::int64_t updated = 0;
        for (const Op& op : program.ops) {
            if (op.kind != OpKind::muon && op.kind != OpKind::adamw) continue;
            updated += element_count(program.value(op.writes[0]).shape);
            if (op.kind == OpKind::muon) stepped.push_back(program.value(op.writes[0]).shape);
        }
        std::set<std::string> values;
        for (const Value& value : program.values) values.insert(value.name);
        for (const TensorSpec& tensor : model_tensors(shape)) {
            if (tensor.hidden) hidden.push_back(tensor.shape);
            EXPECT_TRUE(values.contains("m/" + tensor.name)) << tensor.name;
            EXPECT_EQ(values.contains("v/" + tensor.name), !tensor.hidden) << tensor.name;
        }
        EXPECT_EQ(updated, parameter_count(shape));
        std::ranges::sort(stepped);
        std::ranges::sort(hidden);
        EXPECT_EQ(stepped, hidden);
        EXPECT_EQ(hidden.size(), static_cast<std::size_t>(shape.layers * (shape.kind == ModelKind::llama ? 7 : 4)));
    }
}

TEST(TrainingProgram, muon_refuses_matrices_that_are_cut_or_updated_in_parts) {
    for (const ParallelShape& parallel : {ParallelShape{.tp = 2}, ParallelShape{.dp = 2, .zero = true}})
        EXPECT_THROW(make_training_program(test::tiny_llama(), {.context = 16, .parallel = parallel,
                                                                .optimizer = MuonOptimizer{}}),
                     CheckError);
}

TEST(TrainingProgram, refuses_a_context_beyond_the_models_and_a_rank_outside_its_group) {
    const auto shape = test::tiny_llama();
    EXPECT_THROW(make_training_program(shape, {.context = 129}), CheckError);
    EXPECT_THROW(make_training_program(shape, {.rank = Rank(1)}), CheckError);
}

}  // namespace
}  // namespace atl
