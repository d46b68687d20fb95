// One rank, and two in one process: steps, state, memory, evaluation, and what a failure leaves behind.
#include "island/island.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/hash.h"
#include "island/bench.h"
#include "island/schedule.h"
#include "support/island_testing.h"
#include "support/local_island.h"
#include "support/temporary_directory.h"
#include "support/threads.h"

namespace atl {
namespace {

using test::random_step;
using test::small_island;

constexpr std::uint64_t kSeed = 4;

std::vector<ModelShape> all_models() {
    return {test::small_llama(false), test::small_llama(true), test::small_gpt2()};
}

std::vector<float> parameters_of(Island& island) {
    std::vector<float> values(static_cast<std::size_t>(island.parameter_count()));
    island.copy_parameters(values);
    return values;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
    return largest;
}

// Parameters after `steps` steps on dp ranks as threads; fails unless all ranks end with the same bits.
std::vector<float> train_on_ranks(IslandOptions options, std::int32_t ranks, int steps) {
    options.parallel.dp = ranks;
    const test::LocalIsland local(options);
    std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
    test::run_ranks(ranks, [&](std::int32_t rank) {
        Island island(options, local.links(rank));
        island.initialise(kSeed);
        for (int step = 0; step < steps; ++step) random_step(island, step);
        results[rank] = parameters_of(island);
    });
    for (const auto& result : results) EXPECT_EQ(result, results.front());
    return results.front();
}

TEST(Island, a_step_allocates_nothing_and_touches_exactly_the_bytes_that_were_predicted) {
    for (const ModelShape& model : all_models()) {
        for (const std::int64_t micro_batch : {1, 4}) {
            IslandOptions options = small_island(model, micro_batch);
            options.measure_memory = true;
            Island island(options);
            island.initialise(kSeed);
            random_step(island, 0);
            random_step(island, 1);
            EXPECT_EQ(island.allocations().count, 0);
            EXPECT_EQ(island.measured_bytes(), island.predicted_bytes());
        }
    }
}

TEST(Island, the_loss_falls_on_a_batch_seen_again_and_again) {
    for (const ModelShape& model : all_models()) {
        Island island(small_island(model));
        island.initialise(kSeed);
        const double first = random_step(island, 0).mean_loss();
        EXPECT_NEAR(first, std::log(static_cast<double>(model.vocab)), 0.1);
        for (int step = 0; step < 20; ++step) random_step(island, 0);
        EXPECT_LT(random_step(island, 0).mean_loss(), 0.7 * first);
        EXPECT_EQ(island.optimizer_steps(), 22);
    }
}

TEST(Island, micro_batches_add_up_to_the_whole_batch) {
    for (const ModelShape& model : all_models()) {
        std::vector<StepResult> results;
        std::vector<std::vector<float>> parameters;
        for (const std::int64_t micro_batch : {4, 2, 1}) {
            IslandOptions options = small_island(model, micro_batch);
            options.dtype = DType::f64;
            Island island(options);
            island.initialise(kSeed);
            results.push_back(random_step(island, 0));
            parameters.push_back(parameters_of(island));
        }
        for (std::size_t i = 1; i < results.size(); ++i) {
            EXPECT_EQ(results[i].tokens, results[0].tokens);
            EXPECT_NEAR(results[i].loss_sum / results[0].loss_sum, 1, 1e-12);
            EXPECT_NEAR(results[i].gradient_norm / results[0].gradient_norm, 1, 1e-12);
            EXPECT_LE(largest_difference(parameters[i], parameters[0]), 1e-7);  // one rounding to fp32
        }
    }
}

TEST(Island, two_runs_give_the_same_bits) {
    std::vector<std::string> hashes;
    for (int run = 0; run < 2; ++run) {
        Island island(small_island(test::small_llama()));
        island.initialise(kSeed);
        for (int step = 0; step < 3; ++step) random_step(island, step);
        hashes.push_back(island.parameters_blake2b());
    }
    EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(Island, data_parallel_ranks_equal_one_rank_and_repeat_bit_for_bit) {
    for (const ModelShape& model : all_models()) {
        IslandOptions options = small_island(model, 1);
        options.dtype = DType::f64;
        const auto alone = train_on_ranks(options, 1, 3);
        for (const std::int32_t ranks : {2, 4}) {
            const auto together = train_on_ranks(options, ranks, 3);
            EXPECT_LE(largest_difference(together, alone), 1e-6) << ranks;  // fp32 copies of fp64 parameters
            EXPECT_EQ(train_on_ranks(options, ranks, 3), together);
        }
    }
}

TEST(Island, a_gradient_that_is_not_finite_changes_nothing_and_is_counted) {
    Island island(small_island(test::small_llama()));
    island.initialise(kSeed);
    random_step(island, 0);
    const std::string name = "model.layers.1.mlp.down_proj.weight";
    float& weight = island.tensor(TensorKind::parameter, name).as<float>()[7];
    const float before = weight;
    weight = std::numeric_limits<float>::infinity();
    const auto parameters = parameters_of(island);
    const auto moments = [&](TensorKind kind) {
        const auto values = island.tensor(kind, name).as<float>();
        return std::vector<float>(values.begin(), values.end());
    };
    const auto first = moments(TensorKind::first_moment), second = moments(TensorKind::second_moment);
    const StepResult refused = random_step(island, 1);
    EXPECT_FALSE(refused.applied);
    EXPECT_EQ(island.skipped_steps(), 1);
    EXPECT_EQ(island.optimizer_steps(), 1);
    EXPECT_EQ(parameters_of(island), parameters);
    EXPECT_EQ(moments(TensorKind::first_moment), first);
    EXPECT_EQ(moments(TensorKind::second_moment), second);
    weight = before;
    EXPECT_TRUE(random_step(island, 1).applied);
    EXPECT_EQ(island.optimizer_steps(), 2);
}

TEST(Island, plain_gradient_descent_moves_by_rate_times_gradient) {
    IslandOptions options = small_island(test::small_llama());
    options.optim.kind = OptimKind::sgd;
    options.optim.weight_decay = 0;
    options.optim.grad_clip = 0;
    options.dtype = DType::f64;
    Island island(options);
    island.initialise(kSeed);
    EXPECT_FALSE(island.has_moments());
    const auto before = parameters_of(island);
    const StepResult result = random_step(island, 0);
    const auto after = parameters_of(island);
    double squares = 0;
    for (std::size_t i = 0; i < after.size(); ++i)
        squares += std::pow(double{after[i]} - double{before[i]}, 2);
    EXPECT_NEAR(std::sqrt(squares), options.optim.lr * result.gradient_norm, 1e-6 * result.gradient_norm);
}

TEST(Island, muon_trains_alike_on_one_rank_and_on_two_and_has_one_moment_of_matrices_inside_layers) {
    for (const ModelShape& model : {test::small_llama(), test::small_gpt2()}) {
        IslandOptions options = small_island(model, 1);
        options.optim.kind = OptimKind::muon;
        options.optim.lr = 1e-2;
        Island island(options);
        island.initialise(kSeed);
        std::int64_t first = 0, second = 0;
        island.collect(TensorKind::first_moment, [&](const TensorSpec&, BufferView) { ++first; });
        island.collect(TensorKind::second_moment, [&](const TensorSpec& tensor, BufferView) {
            EXPECT_FALSE(tensor.hidden) << tensor.name;
            ++second;
        });
        const auto hidden = std::ranges::count_if(island.tensors(), &TensorSpec::hidden);
        EXPECT_EQ(first, std::ssize(island.tensors()));
        EXPECT_EQ(second, std::ssize(island.tensors()) - hidden);
        const auto on_one = train_on_ranks(options, 1, 3), on_two = train_on_ranks(options, 2, 3);
        EXPECT_LT(largest_difference(on_one, on_two), 2e-4);
        const double before = random_step(island, 0).loss_sum;
        for (int step = 0; step < 10; ++step) random_step(island, 0);
        EXPECT_LT(random_step(island, 0).loss_sum, 0.9 * before);
        EXPECT_EQ(island.allocations().count, 0);
    }
}

TEST(Island, flat_parameters_are_the_tensors_sorted_by_name_and_go_back_as_they_came) {
    Island island(small_island(test::small_gpt2()));
    island.initialise(kSeed);
    auto flat = parameters_of(island);
    std::vector<std::string> names;
    for (const TensorSpec& spec : island.tensors()) names.push_back(spec.name);
    std::ranges::sort(names);
    const auto first = island.tensor(TensorKind::parameter, names.front()).as<float>();
    EXPECT_TRUE(std::equal(first.begin(), first.end(), flat.begin()));
    const auto last = island.tensor(TensorKind::parameter, names.back()).as<float>();
    EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), flat.rbegin()));
    EXPECT_EQ(island.parameters_blake2b(), blake2b_hex(std::as_bytes(std::span<const float>(flat))));
    for (float& value : flat) value += 1;
    island.set_parameters(flat);
    EXPECT_EQ(parameters_of(island), flat);
}

// A corpus of 300 byte tokens in documents of 40.
std::filesystem::path write_corpus(FileSystem& files, const std::filesystem::path& directory,
                                   std::int64_t vocab) {
    TokenShardWriter writer(files, directory, "corpus", 1'000'000);
    std::vector<Token> tokens;
    const RandomStream random(9, "corpus");
    for (std::uint64_t i = 0; i < 300; ++i) {
        tokens.push_back(
            i % 40 == 0 ? 0 : static_cast<Token>(random.below(i, static_cast<std::uint64_t>(vocab))));
    }
    writer.append(tokens);
    writer.finish();
    return writer.paths().front();
}

TEST(Island, evaluation_gives_the_loss_training_would_see_on_any_number_of_ranks) {
    const test::TemporaryDirectory directory;
    const auto files = make_system_file_system();
    for (const ModelShape& model : all_models()) {
        IslandOptions options = small_island(model, 2);
        const Corpus corpus(*files, {write_corpus(*files, directory.path(), model.vocab).string()},
                            {.vocab = model.vocab, .end_of_text = 0});
        const EvaluationWindows windows(corpus, {.context = model.context, .micro_batch = 2});
        Island island(options);
        island.initialise(kSeed);
        const auto count = windows.window_count();
        const EvaluationResult all = island.evaluate(windows, 0, count);
        EXPECT_EQ(all.tokens, 299);
        EXPECT_NEAR(all.loss_sum / 299, std::log(static_cast<double>(model.vocab)), 0.1);

        options.purpose = IslandPurpose::evaluation;
        Island lean(options);
        lean.initialise(kSeed);
        EXPECT_EQ(lean.evaluate(windows, 0, count).loss_sum, all.loss_sum);
        EXPECT_LT(lean.predicted_bytes(), island.predicted_bytes());

        options.parallel.dp = 2;
        const test::LocalIsland local(options);
        test::run_ranks(2, [&](std::int32_t rank) {
            Island half(options, local.links(rank));
            half.initialise(kSeed);
            const EvaluationResult shared = half.evaluate(windows, 0, count);
            EXPECT_EQ(shared.tokens, all.tokens);
            EXPECT_NEAR(shared.loss_sum / all.loss_sum, 1, 1e-12);
        });

        windows.read(0, 2, island.inputs(0));
        windows.read(2, 4, island.inputs(1));
        const double seen = island.evaluate(windows, 0, 4).loss_sum;
        EXPECT_NEAR(island.step(0.0).loss_sum / seen, 1, 1e-6);  // fp32 logits, summed likewise
    }
}

TEST(Island, a_lost_rank_ends_the_step_with_its_name_and_the_op) {
    IslandOptions options = small_island(test::small_llama(), 1);
    options.parallel.dp = 2;
    test::LocalIsland local(options);
    std::string message;
    test::run_ranks(2, [&](std::int32_t rank) {
        Island island(options, local.links(rank));
        island.initialise(kSeed);
        random_step(island, 0);
        if (rank == 1) {
            local.leave(1);
            return;
        }
        for (int attempt = 0; attempt < 2; ++attempt) {
            try {
                random_step(island, 1);
                FAIL() << "the other rank is gone";
            } catch (const CommError& error) {
                message = error.what();
            }
        }
    });
    EXPECT_NE(message.find("rank 1 has left"), std::string::npos) << message;
}

TEST(Bench, reports_shares_that_add_up_and_memory_that_agrees) {
    const BenchResult result = run_bench({.island = small_island(test::small_llama()), .steps = 3});
    EXPECT_EQ(result.peak_bytes_measured, result.peak_bytes_predicted);
    EXPECT_EQ(result.allocations_in_steps, 0);
    EXPECT_NEAR(
        result.forward_share + result.backward_share + result.optimizer_share + result.communication_share, 1,
        1e-6);
    EXPECT_GT(result.model_flops_utilization, 0);
    EXPECT_LT(result.model_flops_utilization, 1);
    EXPECT_EQ(result.tokens_per_step, 48);
}

TEST(LearningRate, schedules_warm_up_hold_and_decay_as_described) {
    OptimConfig optim{.lr = 1.0, .warmup_steps = 10, .final_lr_fraction = 0.1, .decay_fraction = 0.2};
    for (const auto schedule :
         {LearningRateSchedule::constant, LearningRateSchedule::cosine, LearningRateSchedule::wsd}) {
        optim.schedule = schedule;
        EXPECT_DOUBLE_EQ(learning_rate(optim, 0, 100), 0.1);
        EXPECT_DOUBLE_EQ(learning_rate(optim, 9, 100), 1.0);
        EXPECT_DOUBLE_EQ(learning_rate(optim, 10, 100), 1.0);
        EXPECT_NEAR(learning_rate(optim, 99, 100), schedule == LearningRateSchedule::constant ? 1.0 : 0.1,
                    1e-12);
        for (std::int64_t step = 10; step < 99; ++step) {
            EXPECT_GE(learning_rate(optim, step, 100), learning_rate(optim, step + 1, 100));
        }
    }
    optim.schedule = LearningRateSchedule::wsd;
    EXPECT_DOUBLE_EQ(learning_rate(optim, 79, 100), 1.0);
    EXPECT_DOUBLE_EQ(learning_rate(optim, 80, 100), 1.0 - 0.9 / 20);
    optim.schedule = LearningRateSchedule::cosine;
    EXPECT_NEAR(learning_rate(optim, 10 + 89 / 2, 100), 0.55, 0.01);
}

}  // namespace
}  // namespace atl
