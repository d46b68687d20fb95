// Codes of one, four and eight bits with a scale per block: their definition, their exact values, and what they refuse.
#include "kernels/block_code.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::BlockFormat;

constexpr BlockFormat kFormats[] = {BlockFormat::int8, BlockFormat::int4, BlockFormat::e3m0,
                                    BlockFormat::sign};

struct Encoded {
    BlockFormat format;
    std::int64_t elements = 0;
    std::vector<std::uint8_t> scales, codes;
    bool encodable = false;
};

Encoded encode(BlockFormat format, const std::vector<float>& values, kernels::InstructionSet set) {
    const auto elements = static_cast<std::int64_t>(values.size());
    Encoded encoded{format, elements, std::vector<std::uint8_t>(2 * kernels::block_count(format, elements)),
                    std::vector<std::uint8_t>(kernels::code_bytes(format, elements))};
    encoded.encodable = kernels::block_encode(format, values, encoded.scales, encoded.codes, set);
    return encoded;
}

std::vector<float> decode(const Encoded& encoded, kernels::InstructionSet set) {
    std::vector<float> values(static_cast<std::size_t>(encoded.elements));
    kernels::block_decode({encoded.format, encoded.elements, encoded.scales, encoded.codes, 0}, values, set);
    return values;
}

TEST(BlockCode, every_e3m0_code_and_every_power_of_two_below_the_largest_is_exact) {
    for (const float scale : {1.0F, 3.5F, 0x1.02p-100F, 0x1.FEp126F}) {
        std::vector<float> values{0.0F};
        for (int exponent = -6; exponent <= 0; ++exponent) {
            values.push_back(std::ldexp(scale, exponent));
            values.push_back(-std::ldexp(scale, exponent));
        }
        for (const auto set : test::supported_sets())
            EXPECT_EQ(decode(encode(BlockFormat::e3m0, values, set), set), values);
    }
}

TEST(BlockCode, e3m0_rounds_to_the_nearest_linear_value_and_zero_below_the_middle) {
    const std::vector<float> values{1, 0.75F, 0.7499F, 0.375F, 0.3749F, 0x1p-7F, 0x0.FFp-7F, -0.75F, 0};
    const std::vector<float> expected{1, 1, 0.5F, 0.5F, 0.25F, 0x1p-6F, 0, -1, 0};
    for (const auto set : test::supported_sets())
        EXPECT_EQ(decode(encode(BlockFormat::e3m0, values, set), set), expected);
}

struct Integers {
    BlockFormat format;
    int largest;  // code
};
constexpr Integers kIntegers[] = {{BlockFormat::int8, 127}, {BlockFormat::int4, 7}};

TEST(BlockCode, every_code_of_an_integer_format_comes_back_exactly) {
    for (const auto& [format, largest] : kIntegers) {
        std::vector<float> values;
        for (int q = -largest; q <= largest; ++q)
            values.push_back(static_cast<float>(q) * (1.0F / static_cast<float>(largest)) * 1.75F);
        for (const auto set : test::supported_sets())
            EXPECT_EQ(decode(encode(format, values, set), set), values);
    }
}

TEST(BlockCode, integers_follow_their_definition_in_whole_and_broken_blocks) {
    for (const auto& [format, largest_code] : kIntegers) {
        const std::int64_t block = kernels::block_elements(format);
        for (const std::int64_t size : {std::int64_t{1}, block - 1, block, block + 1, 3 * block + 8}) {
            const auto values = test::normal_values<float>(size, 3);
            const auto decoded = decode(encode(format, values, kernels::best_instruction_set()),
                                        kernels::best_instruction_set());
            for (std::int64_t begin = 0; begin < size; begin += block) {
                const auto end = std::min(size, begin + block);
                float largest = 0;
                for (auto i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
                const float up =
                    std::bit_cast<float>((std::bit_cast<std::uint32_t>(largest) + 0xffff) & 0xffff0000U);
                const auto steps = static_cast<float>(largest_code);
                for (auto i = begin; i < end; ++i) {
                    const float q = std::nearbyint(values[i] * (steps / up));
                    EXPECT_EQ(decoded[i], q * (1.0F / steps) * up) << i;
                }
            }
        }
    }
}

TEST(BlockCode, sign_keeps_the_sum_of_magnitudes_to_the_rounding_of_its_scale) {
    const auto values = test::normal_values<float>(256, 4);
    const auto decoded = decode(encode(BlockFormat::sign, values, kernels::best_instruction_set()),
                                kernels::best_instruction_set());
    double before = 0;
    double after = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(std::signbit(values[i]), std::signbit(decoded[i]));
        before += std::abs(values[i]);
        after += std::abs(decoded[i]);
    }
    EXPECT_NEAR(after, before, before * 0x1p-8);
}

TEST(BlockCode, zeros_of_both_signs_subnormals_and_what_is_as_small_decode_to_zero) {
    for (const BlockFormat format : kFormats) {
        for (const auto set : test::supported_sets()) {
            const Encoded encoded =
                encode(format, {0.0F, -0.0F, 1e-40F, -1e-45F, 0x1p-127F, 0x1.FDp-120F}, set);
            EXPECT_TRUE(encoded.encodable);
            for (const float value : decode(encoded, set)) EXPECT_EQ(value, 0.0F);
            const std::vector<float> least(3, -0x1p-119F);
            EXPECT_EQ(decode(encode(format, least, set), set), least);
        }
    }
}

TEST(BlockCode, what_is_not_finite_or_reaches_2_to_the_127_is_refused_and_only_that) {
    for (const BlockFormat format : kFormats) {
        for (const auto set : test::supported_sets()) {
            for (const float bad : {NAN, -NAN, INFINITY, -INFINITY, 0x1.FF0002p126F}) {
                for (const std::int64_t place : {0, 5, 599}) {
                    std::vector<float> values(600, format == BlockFormat::sign ? bad : 1.0F);
                    values[place] = bad;
                    EXPECT_FALSE(encode(format, values, set).encodable) << bad << " at " << place;
                }
            }
            EXPECT_TRUE(encode(format, std::vector<float>(300, 0x1.FEp126F), set).encodable);
        }
    }
}

TEST(BlockCode, foreign_scales_that_would_decode_to_infinity_are_recognised) {
    for (const std::uint16_t scale : {0x7F00, 0x7F80, 0x7FC0, 0xFFFF, 0x8000}) {
        const std::vector<std::uint8_t> bytes{0, 0, static_cast<std::uint8_t>(scale),
                                              static_cast<std::uint8_t>(scale >> 8)};
        EXPECT_FALSE(kernels::block_scales_allowed(bytes)) << scale;
    }
    const std::vector<std::uint8_t> largest{0xFF, 0x7E};
    ASSERT_TRUE(kernels::block_scales_allowed(largest));
    for (const auto& [format, largest_code] : kIntegers) {
        const std::vector<std::uint8_t> least_code{static_cast<std::uint8_t>(largest_code + 1)};
        for (const auto set : test::supported_sets()) {
            std::vector<float> value(1);
            kernels::block_decode({format, 1, largest, least_code, 0}, value, set);
            EXPECT_TRUE(std::isfinite(value[0]));
        }
    }
}

}  // namespace
}  // namespace atl
