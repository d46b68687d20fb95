// Attention against plain loops in double over shapes, documents and instruction sets; its gradients against
// finite differences; masking, NaN and threads.
#include <omp.h>

#include "core/check.h"
#include "kernels/attention.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::AttentionShape;
using kernels::InstructionSet;
using test::normal_values;

std::vector<std::int32_t> starts_of(const std::vector<int>& lengths) {
    std::vector<std::int32_t> starts;
    std::int32_t tokens = 0;
    for (const int length : lengths) {
        starts.push_back(tokens);
        tokens += length;
    }
    starts.resize(tokens + 1, tokens);
    return starts;
}

std::int64_t out_size(const AttentionShape& shape) {
    return shape.tokens * shape.heads * shape.head_width;
}

// Scratch full of NaN: nothing may be read before it is written.
std::vector<std::byte> dirty_scratch(std::int64_t bytes) {
    return std::vector<std::byte>(bytes, std::byte{0xff});
}

template <class T>
struct Result {
    std::vector<T> out, lse;
};

template <class T>
Result<T> forward(const AttentionShape& shape, const std::vector<std::int32_t>& starts,
                  const std::vector<T>& qkv, InstructionSet set) {
    Result<T> result{std::vector<T>(out_size(shape)), std::vector<T>(shape.heads * shape.tokens)};
    auto scratch = dirty_scratch(kernels::attention_scratch_bytes(shape, sizeof(T)));
    kernels::attention(kernels::Attention<T>{shape, qkv.data(), starts.data(), result.out.data(),
                                             result.lse.data(), scratch.data()},
                       set);
    return result;
}

template <class T>
std::vector<T> backward(const AttentionShape& shape, const std::vector<std::int32_t>& starts,
                        const std::vector<T>& qkv, const std::vector<T>& dout, InstructionSet set) {
    const Result<T> result = forward(shape, starts, qkv, set);
    std::vector<T> dqkv(qkv.size(), static_cast<T>(NAN));
    auto scratch = dirty_scratch(kernels::attention_backward_scratch_bytes(shape, sizeof(T)));
    kernels::attention_backward(
        kernels::AttentionBackward<T>{shape, dout.data(), qkv.data(), result.out.data(), result.lse.data(),
                                      starts.data(), dqkv.data(), scratch.data()},
        set);
    return dqkv;
}

// Softmax written out for one query at a time.
Result<double> reference(const AttentionShape& shape, const std::vector<int>& lengths,
                         const std::vector<double>& qkv) {
    Result<double> result{std::vector<double>(out_size(shape)),
                          std::vector<double>(shape.heads * shape.tokens)};
    const int width = shape.head_width;
    const int group = shape.heads / shape.kv_heads;
    int first = 0;
    for (const int length : lengths) {
        for (int head = 0; head < shape.heads; ++head) {
            const auto at = [&](int token, int slot) {
                return &qkv[token * shape.row_width() + slot * width];
            };
            for (int t = first; t < first + length; ++t) {
                std::vector<double> weights;
                for (int s = first; s <= t; ++s) {
                    double score = 0;
                    const double* key = at(s, shape.heads + head / group);
                    for (int d = 0; d < width; ++d) score += at(t, head)[d] * key[d];
                    weights.push_back(score / std::sqrt(width));
                }
                const double largest = *std::max_element(weights.begin(), weights.end());
                double sum = 0;
                for (double& weight : weights) sum += weight = std::exp(weight - largest);
                result.lse[head * shape.tokens + t] = largest + std::log(sum);
                for (int s = first; s <= t; ++s) {
                    const double* value = at(s, shape.heads + shape.kv_heads + head / group);
                    for (int d = 0; d < width; ++d) {
                        result.out[(t * shape.heads + head) * width + d] +=
                            weights[s - first] / sum * value[d];
                    }
                }
            }
        }
        first += length;
    }
    return result;
}

struct Case {
    AttentionShape shape;
    std::vector<int> lengths;
};

std::vector<Case> cases() {
    return {
        {{1, 1, 1, 32}, {1}},          {{3, 2, 1, 64}, {1, 2}},      {{17, 4, 2, 64}, {17}},
        {{61, 4, 4, 80}, {1, 13, 47}}, {{130, 2, 1, 128}, {129, 1}}, {{301, 6, 2, 32}, {200, 1, 1, 99}},
        {{49, 3, 1, 20}, {48, 1}},     {{70, 1, 1, 144}, {12, 58}},  {{450, 1, 1, 64}, {193, 257}},
    };
}

TEST(AttentionKernel, forward_equals_plain_loops_for_every_shape_and_instruction_set) {
    for (const auto& [shape, lengths] : cases()) {
        const auto qkv = normal_values<double>(shape.tokens * shape.row_width(), 1, 1.5);
        const std::vector<float> qkv32(qkv.begin(), qkv.end());
        const auto starts = starts_of(lengths);
        const auto expected = reference(shape, lengths, qkv);
        for (const auto set : test::supported_sets()) {
            SCOPED_TRACE(fmt::format("{} tokens, width {}, {}", shape.tokens, shape.head_width, name(set)));
            const auto in_double = forward(shape, starts, qkv, set);
            EXPECT_LE(test::largest_error(in_double.out, expected.out), 1e-13);
            EXPECT_LE(test::largest_error(in_double.lse, expected.lse), 1e-13);
            const auto in_float = forward(shape, starts, qkv32, set);
            EXPECT_LE(test::largest_error(in_float.out, expected.out), 1e-6);
            EXPECT_LE(test::largest_error(in_float.lse, expected.lse), 1e-6);
        }
    }
}

TEST(AttentionKernel, backward_equals_finite_differences_of_the_forward) {
    for (const Case& c :
         {Case{{21, 4, 2, 32}, {1, 20}}, Case{{110, 2, 1, 80}, {110}}, Case{{5, 1, 1, 128}, {2, 3}}}) {
        const auto starts = starts_of(c.lengths);
        const auto qkv = normal_values<double>(c.shape.tokens * c.shape.row_width(), 2);
        const auto dout = normal_values<double>(out_size(c.shape), 3);
        for (const auto set : test::supported_sets()) {
            SCOPED_TRACE(name(set));
            test::expect_gradient(
                [&](const std::vector<double>& x) {
                    return test::dot(forward(c.shape, starts, x, set).out, dout);
                },
                qkv, backward(c.shape, starts, qkv, dout, set), 1e-7);
        }
    }
}

TEST(AttentionKernel, backward_in_float_and_under_every_instruction_set_equals_the_double_one) {
    for (const auto& [shape, lengths] : cases()) {
        const auto starts = starts_of(lengths);
        const auto qkv = normal_values<double>(shape.tokens * shape.row_width(), 4);
        const auto dout = normal_values<double>(out_size(shape), 5);
        const auto expected = backward(shape, starts, qkv, dout, InstructionSet::baseline);
        const std::vector<float> qkv32(qkv.begin(), qkv.end());
        const std::vector<float> dout32(dout.begin(), dout.end());
        for (const auto set : test::supported_sets()) {
            SCOPED_TRACE(fmt::format("{} tokens, width {}, {}", shape.tokens, shape.head_width, name(set)));
            EXPECT_LE(test::largest_error(backward(shape, starts, qkv, dout, set), expected), 1e-13);
            EXPECT_LE(test::largest_error(backward(shape, starts, qkv32, dout32, set), expected), 2e-6);
        }
    }
}

TEST(AttentionKernel, a_later_token_or_another_document_changes_no_bit) {
    const AttentionShape shape{100, 2, 2, 64};
    const auto starts = starts_of({40, 60});
    auto qkv = normal_values<float>(shape.tokens * shape.row_width(), 6);
    const auto before = forward(shape, starts, qkv, kernels::best_instruction_set());
    const std::int64_t changed = 70;  // in the second document
    for (std::int64_t i = 0; i < shape.row_width(); ++i) qkv[changed * shape.row_width() + i] += 1.0F;
    const auto after = forward(shape, starts, qkv, kernels::best_instruction_set());
    const std::int64_t width = shape.heads * shape.head_width;
    EXPECT_TRUE(std::equal(before.out.begin(), before.out.begin() + changed * width, after.out.begin()));
    EXPECT_FALSE(std::equal(before.out.begin() + changed * width, before.out.begin() + (changed + 1) * width,
                            after.out.begin() + changed * width));
}

TEST(AttentionKernel, a_document_gives_the_same_bits_alone_and_in_a_pack) {
    const AttentionShape pack{300, 2, 1, 64};
    const AttentionShape alone{250, 2, 1, 64};
    const auto qkv = normal_values<float>(pack.tokens * pack.row_width(), 7);
    const std::vector<float> tail(qkv.begin() + 50 * pack.row_width(), qkv.end());
    const auto set = kernels::best_instruction_set();
    const auto packed = forward(pack, starts_of({50, 250}), qkv, set);
    const auto single = forward(alone, starts_of({250}), tail, set);
    EXPECT_TRUE(std::equal(single.out.begin(), single.out.end(), packed.out.begin() + 50 * 128));
}

TEST(AttentionKernel, scores_far_apart_neither_overflow_nor_lose_the_sum) {
    const AttentionShape shape{60, 1, 1, 32};
    const std::vector<int> lengths{60};
    const auto qkv = normal_values<double>(shape.tokens * shape.row_width(), 8, 40);  // scores of thousands
    const std::vector<float> qkv32(qkv.begin(), qkv.end());
    const auto expected = reference(shape, lengths, qkv);
    for (const auto set : test::supported_sets()) {
        EXPECT_LE(test::largest_error(forward(shape, starts_of(lengths), qkv32, set).out, expected.out),
                  1e-3);
        EXPECT_LE(test::largest_error(forward(shape, starts_of(lengths), qkv, set).out, expected.out), 1e-10);
    }
}

TEST(AttentionKernel, a_nan_reaches_every_output_that_depends_on_it_and_no_other_document) {
    const AttentionShape shape{80, 1, 1, 64};
    const auto starts = starts_of({20, 60});
    for (const int slot : {0, 1, 2}) {  // query, key, value
        auto qkv = normal_values<float>(shape.tokens * shape.row_width(), 9);
        qkv[50 * shape.row_width() + slot * 64] = NAN;
        for (const auto set : test::supported_sets()) {
            const auto out = forward(shape, starts, qkv, set).out;
            for (int t = 0; t < 80; ++t) {
                const bool depends = slot == 0 ? t == 50 : t >= 50;
                if (depends) {
                    EXPECT_TRUE(std::isnan(out[t * 64]))
                        << "slot " << slot << " token " << t << " " << name(set);
                }
                EXPECT_FALSE(t < 20 && std::isnan(out[t * 64])) << "slot " << slot << " token " << t;
            }
        }
    }
}

TEST(AttentionKernel, results_do_not_depend_on_the_number_of_threads) {
    AttentionShape shape{200, 4, 2, 64};
    const auto starts = starts_of({90, 110});
    const auto qkv = normal_values<float>(shape.tokens * shape.row_width(), 10);
    const auto dout = normal_values<float>(out_size(shape), 11);
    const auto set = kernels::best_instruction_set();
    const auto out = forward(shape, starts, qkv, set).out;
    const auto dqkv = backward(shape, starts, qkv, dout, set);
    const int usual_threads = omp_get_max_threads();
    omp_set_num_threads(3);
    shape.threads = 3;
    EXPECT_EQ(forward(shape, starts, qkv, set).out, out);
    EXPECT_EQ(backward(shape, starts, qkv, dout, set), dqkv);
    omp_set_num_threads(usual_threads);
}

TEST(AttentionKernel, refuses_starts_that_do_not_cover_the_tokens) {
    const AttentionShape shape{4, 1, 1, 32};
    const std::vector<float> qkv(4 * 96);
    EXPECT_THROW(forward(shape, {1, 4, 4, 4, 4}, qkv, InstructionSet::baseline), CheckError);
    EXPECT_THROW(forward(shape, {0, 2, 1, 4, 4}, qkv, InstructionSet::baseline), CheckError);
    EXPECT_THROW(forward(shape, {0, 1, 2, 3, 3}, qkv, InstructionSet::baseline), CheckError);
    EXPECT_THROW(forward({4, 3, 2, 32}, {0, 4, 4, 4, 4}, qkv, InstructionSet::baseline), CheckError);
}

}  // namespace
}  // namespace atl
