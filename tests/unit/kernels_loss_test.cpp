// Cross-entropy and embedding: the two ends of a model, against plain loops, with ignored and repeated tokens.
#include <omp.h>

#include "core/check.h"
#include "kernels/cross_entropy.h"
#include "kernels/cross_entropy_parallel.h"
#include "kernels/embedding.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::InstructionSet;
using test::normal_values;

struct LossAndGradient {
    double loss = 0;
    std::vector<double> dlogits;
};

LossAndGradient reference(const std::vector<double>& logits, const std::vector<std::int32_t>& targets) {
    const std::size_t vocab = logits.size() / targets.size();
    LossAndGradient result{0, std::vector<double>(logits.size())};
    for (std::size_t row = 0; row < targets.size(); ++row) {
        if (targets[row] < 0) continue;
        const double* x = &logits[row * vocab];
        const double largest = *std::max_element(x, x + vocab);
        double sum = 0;
        for (std::size_t v = 0; v < vocab; ++v) sum += std::exp(x[v] - largest);
        for (std::size_t v = 0; v < vocab; ++v)
            result.dlogits[row * vocab + v] = std::exp(x[v] - largest) / sum;
        result.dlogits[row * vocab + targets[row]] -= 1;
        result.loss += largest + std::log(sum) - x[targets[row]];
    }
    return result;
}

template <class T>
double loss_and_gradient(std::vector<T>& logits, const std::vector<std::int32_t>& targets,
                         InstructionSet set) {
    const auto rows = static_cast<std::int64_t>(targets.size());
    const std::int64_t vocab = static_cast<std::int64_t>(logits.size()) / rows;
    const double alone = kernels::cross_entropy_loss(
        kernels::CrossEntropyLoss<T>{rows, vocab, logits.data(), targets.data()}, set);
    const double loss =
        kernels::cross_entropy(kernels::CrossEntropy<T>{rows, vocab, logits.data(), targets.data()}, set);
    EXPECT_TRUE(alone == loss || (std::isnan(alone) && std::isnan(loss))) << alone << " " << loss;
    return loss;
}

TEST(CrossEntropyKernel, loss_and_gradient_equal_plain_loops) {
    for (const int vocab : {1, 3, 17, 256, 2048, 5000, 50257, 140001}) {
        const std::vector<std::int32_t> targets = {0, vocab - 1, -1, vocab / 2, -100};
        const auto logits = normal_values<double>(targets.size() * vocab, vocab, 5);
        const auto expected = reference(logits, targets);
        for (const auto set : test::supported_sets()) {
            SCOPED_TRACE(fmt::format("vocabulary {}, {}", vocab, name(set)));
            auto in_double = logits;
            EXPECT_NEAR(loss_and_gradient(in_double, targets, set), expected.loss,
                        1e-12 * (1 + expected.loss));
            EXPECT_LE(test::largest_error(in_double, expected.dlogits), 1e-13);
            std::vector<float> in_float(logits.begin(), logits.end());
            EXPECT_NEAR(loss_and_gradient(in_float, targets, set), expected.loss, 2e-6 * (1 + expected.loss));
            EXPECT_LE(test::largest_error(in_float, expected.dlogits), 1e-6);
        }
    }
}

TEST(CrossEntropyKernel, gradient_equals_finite_differences) {
    const std::vector<std::int32_t> targets = {4, -1, 0};
    const auto logits = normal_values<double>(3 * 19, 1);
    for (const auto set : test::supported_sets()) {
        auto gradient = logits;
        loss_and_gradient(gradient, targets, set);
        test::expect_gradient(
            [&](const std::vector<double>& x) {
                return kernels::cross_entropy_loss(
                    kernels::CrossEntropyLoss<double>{3, 19, x.data(), targets.data()}, set);
            },
            logits, gradient, 1e-7);
    }
}

TEST(CrossEntropyKernel, a_maximum_in_the_last_block_rescales_the_earlier_ones) {
    std::vector<double> logits(3 * 2048 + 5, 0.0);
    logits.back() = 60;
    const std::vector<std::int32_t> targets = {2};
    const auto expected = reference(logits, targets);
    for (const auto set : test::supported_sets()) {
        std::vector<float> in_float(logits.begin(), logits.end());
        EXPECT_NEAR(loss_and_gradient(in_float, targets, set), expected.loss, 1e-5);
        EXPECT_NEAR(in_float[7] / expected.dlogits[7], 1, 1e-6);
    }
}

TEST(CrossEntropyKernel, a_nan_or_infinity_makes_the_loss_non_finite_unless_its_row_is_ignored) {
    for (const float bad : {NAN, INFINITY}) {
        for (const auto set : test::supported_sets()) {
            auto logits = normal_values<float>(2 * 40, 2);
            logits[45] = bad;
            auto copy = logits;
            EXPECT_FALSE(std::isfinite(loss_and_gradient(logits, {1, 2}, set)));
            EXPECT_TRUE(std::isfinite(loss_and_gradient(copy, {1, -1}, set)));
            EXPECT_EQ(copy[45], 0);
        }
    }
}

TEST(CrossEntropyKernel, refuses_a_target_outside_the_vocabulary) {
    std::vector<float> logits(8);
    EXPECT_THROW(loss_and_gradient(logits, {8}, InstructionSet::baseline), CheckError);
}

TEST(CrossEntropyKernel, results_do_not_depend_on_the_number_of_threads) {
    const auto logits = normal_values<float>(100 * 301, 3);
    std::vector<std::int32_t> targets(100);
    for (int row = 0; row < 100; ++row) targets[row] = row * 3 - 1;
    auto one = logits;
    auto many = logits;
    const double loss = loss_and_gradient(one, targets, kernels::best_instruction_set());
    const int usual_threads = omp_get_max_threads();
    omp_set_num_threads(usual_threads + 2);
    EXPECT_EQ(loss_and_gradient(many, targets, kernels::best_instruction_set()), loss);
    omp_set_num_threads(usual_threads);
    EXPECT_EQ(one, many);
}

// The columns [begin, end) of logits, as the part-th of `parts` ranks has them.
template <class T>
struct CutLogits {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::vector<T> logits;
    std::vector<T> max;
    std::vector<T> sums;
};

// What `parts` ranks compute together; the exchanges between them are plain loops.
template <class T>
LossAndGradient cut_loss_and_gradient(const std::vector<double>& logits,
                                      const std::vector<std::int32_t>& targets, std::int64_t parts,
                                      InstructionSet set) {
    const auto rows = static_cast<std::int64_t>(targets.size());
    const std::int64_t vocab = static_cast<std::int64_t>(logits.size()) / rows;
    std::vector<CutLogits<T>> cuts(parts);
    std::vector<T> max(rows, -INFINITY), sums(2 * rows, 0);
    for (std::int64_t part = 0; part < parts; ++part) {
        auto& cut = cuts[part];
        cut = {vocab * part / parts,
               vocab * (part + 1) / parts,
               {},
               std::vector<T>(rows),
               std::vector<T>(2 * rows)};
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t v = cut.begin; v < cut.end; ++v)
                cut.logits.push_back(static_cast<T>(logits[row * vocab + v]));
        kernels::logits_max(
            kernels::LogitsMax<T>{rows, cut.end - cut.begin, cut.logits.data(), cut.max.data()}, set);
        for (std::int64_t row = 0; row < rows; ++row) max[row] = std::max(max[row], cut.max[row]);
    }
    for (auto& cut : cuts) {
        kernels::logits_sum(
            kernels::LogitsSum<T>{rows, cut.end - cut.begin, cut.begin, vocab, cut.logits.data(),
                                  targets.data(), max.data(), cut.sums.data()},
            set);
        for (std::int64_t i = 0; i < 2 * rows; ++i) sums[i] += cut.sums[i];
    }
    LossAndGradient result{0, std::vector<double>(logits.size())};
    for (auto& cut : cuts) {
        kernels::CrossEntropyParallel<T> entropy{
            rows,           cut.end - cut.begin, cut.begin,   cut.logits.data(), nullptr,
            targets.data(), max.data(),          sums.data(), &result.loss};
        kernels::cross_entropy_parallel(entropy, set);
        const double alone = result.loss;
        entropy.dlogits = cut.logits.data();
        kernels::cross_entropy_parallel(entropy, set);
        EXPECT_TRUE(alone == result.loss || (std::isnan(alone) && std::isnan(result.loss)));
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t v = cut.begin; v < cut.end; ++v)
                result.dlogits[row * vocab + v] = cut.logits[row * (cut.end - cut.begin) + v - cut.begin];
    }
    return result;
}

TEST(CutCrossEntropyKernel, ranks_together_give_the_loss_and_gradient_of_the_whole_vocabulary) {
    for (const int vocab : {4, 17, 257, 5000}) {
        const std::vector<std::int32_t> targets = {0, vocab - 1, -1, vocab / 2, -100};
        const auto logits = normal_values<double>(targets.size() * vocab, vocab, 5);
        const auto expected = reference(logits, targets);
        for (const auto set : test::supported_sets())
            for (const int parts : {1, 2, 3}) {
                SCOPED_TRACE(fmt::format("vocabulary {} in {}, {}", vocab, parts, name(set)));
                const auto in_double = cut_loss_and_gradient<double>(logits, targets, parts, set);
                EXPECT_NEAR(in_double.loss, expected.loss, 1e-12 * (1 + expected.loss));
                EXPECT_LE(test::largest_error(in_double.dlogits, expected.dlogits), 1e-13);
                const auto in_float = cut_loss_and_gradient<float>(logits, targets, parts, set);
                EXPECT_NEAR(in_float.loss, expected.loss, 2e-6 * (1 + expected.loss));
                EXPECT_LE(test::largest_error(in_float.dlogits, expected.dlogits), 1e-6);
            }
    }
}

TEST(CutCrossEntropyKernel, a_nan_or_infinity_on_one_rank_makes_the_loss_of_all_non_finite) {
    for (const double bad : {double(NAN), double(INFINITY)})
        for (const auto set : test::supported_sets()) {
            auto logits = normal_values<double>(2 * 40, 2);
            logits[45] = bad;
            EXPECT_FALSE(std::isfinite(cut_loss_and_gradient<float>(logits, {1, 39}, 2, set).loss));
            const auto ignored = cut_loss_and_gradient<float>(logits, {1, -1}, 2, set);
            EXPECT_TRUE(std::isfinite(ignored.loss));
            EXPECT_EQ(ignored.dlogits[45], 0);
        }
}

TEST(CutCrossEntropyKernel, refuses_a_target_outside_the_whole_vocabulary) {
    const auto logits = normal_values<double>(8, 1);
    EXPECT_THROW(cut_loss_and_gradient<float>(logits, {8}, 2, InstructionSet::baseline), CheckError);
}

TEST(CutCrossEntropyKernel, results_do_not_depend_on_the_number_of_threads) {
    const auto logits = normal_values<double>(100 * 301, 3);
    std::vector<std::int32_t> targets(100);
    for (int row = 0; row < 100; ++row) targets[row] = row * 3 - 1;
    const auto set = kernels::best_instruction_set();
    const auto one = cut_loss_and_gradient<float>(logits, targets, 2, set);
    const int usual_threads = omp_get_max_threads();
    omp_set_num_threads(usual_threads + 2);
    const auto many = cut_loss_and_gradient<float>(logits, targets, 2, set);
    omp_set_num_threads(usual_threads);
    EXPECT_EQ(one.loss, many.loss);
    EXPECT_EQ(one.dlogits, many.dlogits);
}

TEST(EmbeddingKernel, gathers_one_table_or_the_sum_of_two) {
    for (const int channels : {1, 3, 17, 64, 100}) {
        const auto table = normal_values<float>(11 * channels, 4);
        const auto positions = normal_values<float>(5 * channels, 5);
        const std::vector<std::int32_t> tokens = {10, 0, 3, 3};
        const std::vector<std::int32_t> places = {0, 1, 2, 4};
        for (const auto set : test::supported_sets()) {
            std::vector<float> one(4 * channels);
            std::vector<float> two(4 * channels);
            kernels::embedding(
                kernels::Embedding<float>{4, channels, {tokens.data(), table.data(), 11}, {}, one.data()},
                set);
            kernels::embedding(kernels::Embedding<float>{4,
                                                         channels,
                                                         {tokens.data(), table.data(), 11},
                                                         {places.data(), positions.data(), 5},
                                                         two.data()},
                               set);
            for (int t = 0; t < 4; ++t) {
                for (int c = 0; c < channels; ++c) {
                    EXPECT_EQ(one[t * channels + c], table[tokens[t] * channels + c]);
                    EXPECT_EQ(two[t * channels + c],
                              table[tokens[t] * channels + c] + positions[places[t] * channels + c]);
                }
            }
        }
    }
}

TEST(EmbeddingKernel, backward_adds_repeated_tokens_in_order_over_zeros_or_what_was_there) {
    const std::vector<std::int32_t> tokens = {2, 0, 2, 2};
    for (const int channels : {1, 19, 130}) {
        const auto dx = normal_values<float>(4 * channels, 6);
        for (const auto set : test::supported_sets()) {
            for (const bool accumulate : {false, true}) {
                std::vector<float> dtable(4 * channels, 0.5F);
                kernels::embedding_backward(
                    kernels::EmbeddingBackward<float>{4, channels, 4, 0, tokens.data(), dx.data(),
                                                      dtable.data(), accumulate},
                    set);
                const float before = accumulate ? 0.5F : 0.0F;
                for (int c = 0; c < channels; ++c) {
                    EXPECT_EQ(dtable[c], before + dx[channels + c]);
                    EXPECT_EQ(dtable[channels + c], before);
                    EXPECT_EQ(dtable[2 * channels + c],
                              ((before + dx[c]) + dx[2 * channels + c]) + dx[3 * channels + c]);
                }
            }
        }
    }
}

TEST(EmbeddingKernel, a_cut_table_gives_zeros_for_rows_elsewhere_and_adds_nothing_to_them) {
    constexpr int kChannels = 19;
    const auto table = normal_values<float>(7 * kChannels, 4);
    const std::vector<std::int32_t> tokens = {6, 0, 3, 2, 3};
    const auto dx = normal_values<float>(tokens.size() * kChannels, 6);
    for (const auto set : test::supported_sets()) {
        std::vector<float> together(tokens.size() * kChannels, 0), dtable;
        for (const auto& [begin, end] : {std::pair(0, 3), std::pair(3, 7)}) {
            const kernels::EmbeddingTable<float> cut{tokens.data(), &table[begin * kChannels], end - begin,
                                                     begin, 7};
            std::vector<float> x(together.size());
            kernels::embedding(kernels::Embedding<float>{5, kChannels, cut, {}, x.data()}, set);
            for (std::size_t i = 0; i < x.size(); ++i) together[i] += x[i];
            std::vector<float> part((end - begin) * kChannels, 0.5F);
            kernels::embedding_backward(
                kernels::EmbeddingBackward<float>{5, kChannels, end - begin, begin, tokens.data(), dx.data(),
                                                  part.data(), false},
                set);
            dtable.insert(dtable.end(), part.begin(), part.end());
        }
        std::vector<float> whole(together.size()), whole_dtable(dtable.size());
        kernels::embedding(
            kernels::Embedding<float>{5, kChannels, {tokens.data(), table.data(), 7}, {}, whole.data()}, set);
        kernels::embedding_backward(kernels::EmbeddingBackward<float>{5, kChannels, 7, 0, tokens.data(),
                                                                      dx.data(), whole_dtable.data(), false},
                                    set);
        EXPECT_EQ(together, whole);
        EXPECT_EQ(dtable, whole_dtable);
    }
}

TEST(EmbeddingKernel, refuses_indices_outside_the_table) {
    const std::vector<float> table(8);
    std::vector<float> x(2);
    for (const std::int32_t index : {-1, 4}) {
        EXPECT_THROW(
            kernels::embedding(kernels::Embedding<float>{1, 2, {&index, table.data(), 4}, {}, x.data()}),
            CheckError);
    }
}

}  // namespace
}  // namespace atl
