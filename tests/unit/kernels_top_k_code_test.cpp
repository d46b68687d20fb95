// The largest values of each tile: which are kept, what they decode to, how records are packed, what is refused.
#include "kernels/top_k_code.h"

#include <numeric>

#include "support/kernel_testing.h"

namespace atl {
namespace {

using Record = std::vector<std::uint8_t>;

Record encode(std::int64_t kept, const std::vector<float>& values,
              kernels::InstructionSet set = kernels::best_instruction_set()) {
    Record record(
        static_cast<std::size_t>(kernels::top_k_bytes(kept, static_cast<std::int64_t>(values.size()))));
    EXPECT_TRUE(kernels::top_k_encode(kept, values, record, set));
    EXPECT_TRUE(kernels::top_k_valid({kept, static_cast<std::int64_t>(values.size()), record, 0}));
    return record;
}

std::vector<float> decode(std::int64_t kept, const Record& record, std::size_t count) {
    std::vector<float> values(count, -1);
    kernels::top_k_decode({kept, static_cast<std::int64_t>(count), record, 0}, values);
    return values;
}

// By sorting: larger magnitudes first, of equal ones lower indices.
std::vector<std::size_t> largest(const std::vector<float>& values, std::size_t begin, std::size_t count,
                                 std::size_t kept) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), begin);
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return std::abs(values[a]) > std::abs(values[b]); });
    order.resize(kept);
    return order;
}

TEST(TopKCode, keeps_the_largest_of_each_tile_and_of_equal_ones_the_first) {
    for (const std::int64_t kept : {1, 5, 64, 100, 1000, 4096}) {
        for (const std::int64_t size : {1, 2, 100, 127, 4095, 4096, 4097, 9000}) {
            auto values = test::normal_values<float>(size, 1);
            for (float& value : values) {  // many ties, no zeros
                value = std::round(value * 4);
                if (value == 0) value = 0.5F;
            }
            std::vector<float> expected(values.size(), 0);
            for (std::int64_t begin = 0; begin < size; begin += 4096) {
                const auto count = std::min<std::int64_t>(4096, size - begin);
                for (const std::size_t i : largest(values, begin, count, kernels::top_k_kept(kept, count)))
                    expected[i] = values[i];
            }
            for (const auto set : test::supported_sets()) {
                const auto decoded = decode(kept, encode(kept, values, set), values.size());
                for (std::size_t i = 0; i < values.size(); ++i) {
                    ASSERT_EQ(decoded[i] != 0, expected[i] != 0) << kept << " of " << size << " at " << i;
                    ASSERT_EQ(std::signbit(decoded[i]), std::signbit(expected[i]));
                }
            }
        }
    }
}

TEST(TopKCode, two_magnitudes_are_kept_exactly_and_more_by_the_means_of_their_classes) {
    std::vector<float> values(4096, 0.001F);
    values[0] = 4;
    values[77] = -4;
    values[4095] = 0.5F;
    auto expected = std::vector<float>(4096, 0);
    expected[0] = 4;
    expected[77] = -4;
    expected[4095] = 0.5F;
    EXPECT_EQ(decode(3, encode(3, values), 4096), expected);
    values[4000] = -1.5F;  // the mean of magnitudes is 2.5: 0.5 and 1.5 are below
    expected[4000] = -1;
    expected[4095] = 1;
    EXPECT_EQ(decode(4, encode(4, values), 4096), expected);
}

TEST(TopKCode, a_record_is_laid_out_as_documented) {
    std::vector<float> values(4096, 0);
    values[0] = 4;
    values[4095] = -0.5F;
    const Record expected{0x00, 0x3F, 0x80, 0x40, 1 | 2 << 2, 0x00, 0xF0, 0xFF};
    EXPECT_EQ(encode(2, values), expected);
    EXPECT_EQ(encode(4096, {3, -1}), (Record{0x80, 0x3F, 0x40, 0x40, 1 | 2 << 2, 0b10}));  // 1-bit indices
}

TEST(TopKCode, sizes_are_the_formula) {
    EXPECT_EQ(kernels::top_k_bytes(64, 0), 0);
    EXPECT_EQ(kernels::top_k_bytes(64, 4096), 4 + 16 + 96);
    EXPECT_EQ(kernels::top_k_bytes(64, 65536), 16 * 116);
    EXPECT_EQ(kernels::top_k_bytes(64, 4097), 116 + 4 + 1 + 0);  // one value needs no index
    EXPECT_EQ(kernels::top_k_bytes(64, 1000), 4 + 4 + 20);       // 16 of 1000, 10 bits each
    EXPECT_EQ(kernels::top_k_bytes(64, std::int64_t{1} << 33), (std::int64_t{1} << 21) * 116);
}

TEST(TopKCode, zeros_and_equal_values_are_no_trouble) {
    for (const auto set : test::supported_sets()) {
        EXPECT_EQ(decode(64, encode(64, std::vector<float>(5000, 0), set), 5000),
                  std::vector<float>(5000, 0));
        const auto decoded = decode(64, encode(64, std::vector<float>(4096, -2), set), 4096);
        for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(decoded[i], i < 64 ? -2 : 0);
    }
}

TEST(TopKCode, what_is_not_finite_is_refused_wherever_it_stands) {
    for (const float bad : {NAN, -NAN, INFINITY, -INFINITY, 0x1.FFFFFEp127F}) {
        for (const std::size_t place : {0, 4095, 4096, 4999}) {
            auto values = test::normal_values<float>(5000, 2);
            values[place] = bad;
            Record record(static_cast<std::size_t>(kernels::top_k_bytes(64, 5000)));
            for (const auto set : test::supported_sets())
                EXPECT_FALSE(kernels::top_k_encode(64, values, record, set)) << bad << " at " << place;
        }
    }
}

TEST(TopKCode, foreign_records_with_bad_means_or_indices_are_recognised_and_harm_nothing) {
    const auto values = test::normal_values<float>(100, 3);
    const Record good = encode(1000, values);  // 25 of 100, 7 bits each
    const auto valid = [](const Record& record) { return kernels::top_k_valid({1000, 100, record, 0}); };
    Record infinite = good;
    infinite[3] = 0x7F;
    infinite[2] = 0x80;
    EXPECT_FALSE(valid(infinite));
    Record negative = good;
    negative[1] |= 0x80;
    EXPECT_FALSE(valid(negative));
    Record repeated = good;
    std::fill(repeated.begin() + 4 + 7, repeated.end(), std::uint8_t{0});
    EXPECT_FALSE(valid(repeated));
    Record beyond = good;
    std::fill(beyond.begin() + 4 + 7, beyond.end(), std::uint8_t{0xFF});
    EXPECT_FALSE(valid(beyond));
    EXPECT_EQ(decode(1000, beyond, 100), std::vector<float>(100, 0));
}

}  // namespace
}  // namespace atl
