// The text of a tiny model's training step, so that no change to emission, order or printing goes unnoticed.
// ATOLL_WRITE_FIXTURE=1 writes the file anew.
#include <gtest/gtest.h>

#include "config/model_preset.h"
#include "model/training_program.h"
#include "program/placement.h"
#include "program/text.h"
#include "support/golden_text.h"
#include "support/small_models.h"

namespace atl {
namespace {

ModelShape one_layer(ModelShape shape) {
    shape.layers = 1;
    return shape;
}

TEST(GoldenProgram, of_a_llama_on_two_ranks) {
    const auto program = make_training_program(one_layer(test::tiny_llama()),
                                               {.sequences = 2,
                                                .context = 16,
                                                .micro_batches = 2,
                                                .parallel = {.dp = 2},
                                                .bucket_bytes = 100'000,
                                                .optimizer = AdamwAttributes{.weight_decay = 0.1}});
    test::expect_golden_text("programs/llama.program", print(program));
}

// Sequence parallelism, a cut vocabulary and split updates.
TEST(GoldenProgram, of_a_llama_cut_over_four_ranks) {
    const auto program =
        make_training_program(one_layer(test::tiny_llama()), {.context = 16,
                                                              .rank = Rank(1),
                                                              .parallel = {.tp = 2, .dp = 2, .zero = true},
                                                              .bucket_bytes = 100'000});
    test::expect_golden_text("programs/llama_cut.program", print(program));
}

TEST(GoldenProgram, of_a_gpt2_on_one_rank) {
    const auto program =
        make_training_program(one_layer(test::tiny_gpt2()), {.context = 16, .dtype = DType::f64});
    test::expect_golden_text("programs/gpt2.program", print(program));
}

// Peaks of known models: what a change costs or saves in memory shows here.
TEST(GoldenProgram, peak_bytes_of_known_models) {
    std::string lines;
    for (const auto* name : {"llama-1b", "llama-8b", "gpt2-124m"}) {
        auto program = make_training_program(shape_of(*model_preset(name)), {.micro_batches = 2});
        lines += fmt::format("{} {}\n", name, place(program).peak_bytes());
    }
    test::expect_golden_text("programs/peak_bytes.txt", lines);
}

}  // namespace
}  // namespace atl
