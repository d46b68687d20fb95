// Islands that cut the model: state comes together whole and goes out again under any layout, training is the same
// whatever the layout, schedule and executor, and what is evaluated is counted once.
#include <gtest/gtest.h>

#include <cmath>

#include "core/hash.h"
#include "island/island.h"
#include "program/placement.h"
#include "support/island_testing.h"
#include "support/local_island.h"
#include "support/threads.h"

namespace atl {
namespace {

constexpr std::uint64_t kSeed = 11;

IslandOptions hybrid(const ParallelShape& parallel, ScheduleKind schedule = ScheduleKind::serial,
                     const ModelShape& model = test::small_llama()) {
    IslandOptions options = test::small_island(model, 1);
    options.dtype = DType::f64;
    options.parallel = parallel;
    options.schedule = schedule;
    if (parallel.pp > 1 && schedule == ScheduleKind::serial) options.schedule = ScheduleKind::one_f_one_b;
    return options;
}

std::vector<IslandOptions> hybrids() {
    return {
        hybrid({.tp = 2}),
        hybrid({.tp = 4}),
        hybrid({.pp = 2}, ScheduleKind::gpipe),
        hybrid({.pp = 2}, ScheduleKind::zero_bubble),
        hybrid({.pp = 2, .chunks = 2, .stage_layers = {0, 1, 1, 0}}, ScheduleKind::interleaved),
        hybrid({.pp = 2, .chunks = 2, .placement = StagePlacement::fold, .stage_layers = {0, 1, 1, 0}},
               ScheduleKind::strands),
        hybrid({.tp = 2}, ScheduleKind::strands),
        hybrid({.dp = 2, .zero = true}),
        hybrid({.tp = 2, .pp = 2, .dp = 2, .zero = true}),
    };
}

struct Outcome {
    std::vector<float> parameters;
    std::vector<double> losses;
    double gradient_norm = 0;
    std::vector<std::vector<double>> state;  // all kinds of tensors, whole
};

// What the gateway has after three steps.
Outcome train(const IslandOptions& options, const std::vector<std::vector<double>>* from = nullptr) {
    const test::LocalIsland local(options);
    Outcome outcome;
    test::run_ranks(local.size(), [&](std::int32_t rank) {
        Island island(options, local.links(rank));
        const bool gateway = rank == 0;
        island.initialise(kSeed);
        if (from != nullptr) {
            auto next = from->begin();
            for (const TensorKind kind : island.tensor_kinds())
                island.distribute(kind, [&](const TensorSpec&, BufferView whole) {
                    std::ranges::copy(*next++, whole.as<double>().begin());
                });
        }
        for (int step = 0; step < 3; ++step) {
            const StepResult result = test::random_step(island, step);
            EXPECT_TRUE(result.applied);
            if (!gateway) continue;
            outcome.losses.push_back(result.mean_loss());
            outcome.gradient_norm = result.gradient_norm;
        }
        std::vector<float> parameters(gateway ? static_cast<std::size_t>(island.parameter_count()) : 0);
        island.copy_parameters(parameters);
        if (gateway) outcome.parameters = parameters;
        for (const TensorKind kind : island.tensor_kinds())
            island.collect(kind, [&](const TensorSpec&, BufferView whole) {
                const auto values = whole.as<double>();
                if (gateway) outcome.state.emplace_back(values.begin(), values.end());
            });
    });
    return outcome;
}

void expect_near(const Outcome& found, const Outcome& expected, double tolerance) {
    ASSERT_EQ(found.parameters.size(), expected.parameters.size());
    for (std::size_t i = 0; i < expected.parameters.size(); ++i)
        ASSERT_NEAR(found.parameters[i], expected.parameters[i], 1e-6) << i;
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
        EXPECT_NEAR(found.losses[i] / expected.losses[i], 1, tolerance);
    EXPECT_NEAR(found.gradient_norm / expected.gradient_norm, 1, tolerance);
}

std::string describe(const IslandOptions& options) {
    const ParallelShape& p = options.parallel;
    return fmt::format("{} tp {} pp {} dp {} zero {}", name(options.schedule), p.tp, p.pp, p.dp, p.zero);
}

TEST(HybridIsland, every_layout_and_schedule_trains_as_one_rank_does) {
    const Outcome alone = train(hybrid({}));
    for (const IslandOptions& options : hybrids()) {
        SCOPED_TRACE(describe(options));
        expect_near(train(options), alone, 1e-10);
    }
}

// Its queries, keys and values are one tensor, of which a rank holds three boxes.
TEST(HybridIsland, a_fused_matrix_of_queries_keys_and_values_is_cut_and_comes_together_again) {
    const auto gpt2 = [](const ParallelShape& parallel) {
        return hybrid(parallel, ScheduleKind::serial, test::small_gpt2());
    };
    const Outcome alone = train(gpt2({}));
    for (const ParallelShape& parallel :
         {ParallelShape{.tp = 2}, ParallelShape{.tp = 3}, ParallelShape{.tp = 2, .pp = 2},
          ParallelShape{.tp = 2, .dp = 2, .zero = true}}) {
        SCOPED_TRACE(describe(gpt2(parallel)));
        const Outcome cut = train(gpt2(parallel));
        expect_near(cut, alone, 1e-10);
        expect_near(train(gpt2({}), &cut.state), train(gpt2(parallel), &cut.state), 1e-10);
    }
}

TEST(HybridIsland, executors_give_the_same_bits_for_every_layout_and_schedule) {
    for (IslandOptions options : hybrids()) {
        SCOPED_TRACE(describe(options));
        const Outcome event = train(options);
        for (const auto mode : {ExecutionMode::serial, ExecutionMode::barrier}) {
            options.mode = mode;
            EXPECT_EQ(train(options).state, event.state) << name(mode);
        }
    }
}

TEST(HybridIsland, state_of_one_layout_goes_on_in_another) {
    const Outcome before = train(hybrid({.tp = 2}));
    const Outcome alone = train(hybrid({}), &before.state);
    for (const IslandOptions& options : hybrids()) {
        SCOPED_TRACE(describe(options));
        expect_near(train(options, &before.state), alone, 1e-10);
    }
}

// One document a sequence.
void whole_documents_step(Island& island) {
    const std::int64_t context = island.options().batch.context;
    for (std::int64_t k = 0; k < island.local_micro_batches(); ++k) {
        const MicroBatchView batch = island.inputs(k);
        test::fill_random_batch(batch, context, island.options().model.vocab, 0, k);
        const auto tokens = static_cast<std::int64_t>(batch.tokens.size());
        for (std::int64_t t = 0; t < tokens; ++t) batch.positions[t] = static_cast<std::int32_t>(t % context);
        for (std::int64_t i = 0; i <= tokens; ++i)
            batch.starts[i] = static_cast<std::int32_t>(std::min(i * context, tokens));
    }
    island.step(0.01);
}

TEST(HybridIsland, memory_is_what_was_predicted_on_every_rank_and_steps_allocate_nothing) {
    for (IslandOptions options : hybrids()) {
        SCOPED_TRACE(describe(options));
        options.measure_memory = true;
        options.model.context = options.batch.context =
            48;  // attention's block: its scratch is used to the end
        const test::LocalIsland local(options);
        test::run_ranks(local.size(), [&](std::int32_t rank) {
            Island island(options, local.links(rank));
            island.initialise(kSeed);
            whole_documents_step(island);
            whole_documents_step(island);
            EXPECT_EQ(island.measured_bytes(), island.predicted_bytes())
                << describe(options) << " rank " << rank;
            EXPECT_EQ(island.allocations().count, 0) << describe(options) << " rank " << rank;
        });
    }
}

TEST(HybridIsland, strands_hold_at_most_a_layer_more_than_one_micro_batch_after_another) {
    IslandOptions options = hybrid({.tp = 2});
    options.model.layers = 8;
    options.batch.sequences_per_step = 8;
    const auto placed = [&](ScheduleKind schedule) {
        options.schedule = schedule;
        Program program = training_program(options, Rank(0));
        return place(program);
    };
    const Placement serial = placed(ScheduleKind::serial);
    const std::int64_t a_layer =
        serial.arena_bytes.at({Role::activation, Space::device}) / options.model.layers;
    EXPECT_LE(placed(ScheduleKind::strands).peak_bytes(),
              serial.peak_bytes() + std::max(serial.peak_bytes() * 3 / 100, a_layer));
}

}  // namespace
}  // namespace atl
