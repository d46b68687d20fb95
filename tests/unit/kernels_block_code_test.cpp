// One- and four-bit codes with a scale per block: their definition, their exact values, and what they refuse.
#include "kernels/block_code.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::BlockFormat;

constexpr BlockFormat kFormats[] = {BlockFormat::int4, BlockFormat::e3m0, BlockFormat::sign};

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

TEST(BlockCode, all_sevenths_of_the_largest_magnitude_are_exact_in_int4) {
    std::vector<float> values;
    for (int q = -7; q <= 7; ++q) values.push_back(static_cast<float>(q) * (1.0F / 7) * 1.75F);
    for (const auto set : test::supported_sets())
        EXPECT_EQ(decode(encode(BlockFormat::int4, values, set), set), values);
}

TEST(BlockCode, int4_follows_its_definition_in_whole_and_broken_blocks) {
    for (const std::int64_t size : {1, 63, 64, 65, 200}) {
        const auto values = test::normal_values<float>(size, 3);
        const auto decoded = decode(encode(BlockFormat::int4, values, kernels::best_instruction_set()),
                                    kernels::best_instruction_set());
        for (std::int64_t begin = 0; begin < size; begin += 64) {
            const auto end = std::min<std::int64_t>(size, begin + 64);
            float largest = 0;
            for (auto i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
            const float up =
                std::bit_cast<float>((std::bit_cast<std::uint32_t>(largest) + 0xffff) & 0xffff0000U);
            for (auto i = begin; i < end; ++i) {
                const float q = std::nearbyint(values[i] * (7 / up));
                EXPECT_EQ(decoded[i], q * (1.0F / 7) * up) << i;
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

TEST(BlockCode, zeros_of_both_signs_subnormals_and_blocks_of_them_decode_to_zero) {
    for (const BlockFormat format : kFormats) {
        for (const auto set : test::supported_sets()) {
            const Encoded encoded = encode(format, {0.0F, -0.0F, 1e-40F, -1e-45F, 0x1p-127F}, set);
            EXPECT_TRUE(encoded.encodable);
            for (const float value : decode(encoded, set)) EXPECT_EQ(value, 0.0F);
        }
    }
}

TEST(BlockCode, what_is_not_finite_or_reaches_2_to_the_127_is_refused_and_only_that) {
    for (const BlockFormat format : kFormats) {
        for (const auto set : test::supported_sets()) {
            for (const float bad : {NAN, -NAN, INFINITY, -INFINITY, 0x1.FF0002p126F}) {
                for (const std::int64_t place : {0, 5, 299}) {
                    std::vector<float> values(300, format == BlockFormat::sign ? bad : 1.0F);
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
    const std::vector<std::uint8_t> least_code{8};
    for (const auto set : test::supported_sets()) {
        std::vector<float> value(1);
        kernels::block_decode({BlockFormat::int4, 1, largest, least_code, 0}, value, set);
        EXPECT_TRUE(std::isfinite(value[0]));
    }
}

}  // namespace
}  // namespace atl
