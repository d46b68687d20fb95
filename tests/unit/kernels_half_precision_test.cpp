// Sixteen-bit codes: their definition, rounding, the same bits under every instruction set, edge values.
#include "kernels/half_precision.h"

#include <cstring>

#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::InstructionSet;

using Encode = void (*)(std::span<const float>, std::span<std::uint16_t>, InstructionSet);
using Decode = void (*)(std::span<const std::uint16_t>, std::span<float>, InstructionSet);

std::vector<std::uint16_t> every_code() {
    std::vector<std::uint16_t> codes(65536);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
    return codes;
}

// 2^exponent · (1 + mantissa/2^bits) by arithmetic, the formats' definition.
double value_of(std::uint16_t code, int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int mantissa = code & ((1 << mantissa_bits) - 1);
    const double sign = code & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? sign * INFINITY : NAN;
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

struct Format {
    Encode encode;
    Decode decode;
    int exponent_bits, mantissa_bits;
};
const Format kFormats[] = {{kernels::fp16_encode, kernels::fp16_decode, 5, 10},
                           {kernels::bf16_encode, kernels::bf16_decode, 8, 7}};

TEST(HalfPrecision, every_code_decodes_to_its_value_and_encodes_back_to_itself) {
    const auto codes = every_code();
    for (const Format& format : kFormats) {
        for (const auto set : test::supported_sets()) {
            std::vector<float> values(codes.size());
            std::vector<std::uint16_t> back(codes.size());
            format.decode(codes, values, set);
            format.encode(values, back, set);
            for (std::size_t i = 0; i < codes.size(); ++i) {
                const double expected = value_of(codes[i], format.exponent_bits, format.mantissa_bits);
                if (std::isnan(expected)) {
                    ASSERT_TRUE(std::isnan(values[i])) << i;
                    std::vector<float> again(1);
                    format.decode(std::span(back).subspan(i, 1), again, set);
                    ASSERT_TRUE(std::isnan(again[0])) << i;
                } else {
                    ASSERT_EQ(values[i], expected) << i;
                    ASSERT_EQ(back[i], codes[i]) << i;
                }
            }
        }
    }
}

TEST(HalfPrecision, rounds_to_nearest_and_ties_to_even) {
    const auto codes = every_code();
    for (const Format& format : kFormats) {
        for (const auto set : test::supported_sets()) {
            std::vector<float> values(codes.size());
            format.decode(codes, values, set);
            // Between neighbours, and just beside the middle.
            std::vector<float> between;
            std::vector<std::uint16_t> expected;
            const std::uint16_t infinity =
                static_cast<std::uint16_t>(((1 << format.exponent_bits) - 1) << format.mantissa_bits);
            for (std::uint16_t code = 0; code + 1 < infinity; ++code) {
                const float middle =
                    static_cast<float>((static_cast<double>(values[code]) + values[code + 1]) / 2);
                for (const float sign : {1.0F, -1.0F}) {
                    const auto with_sign = [&](int magnitude) {
                        return static_cast<std::uint16_t>(magnitude | (sign < 0 ? 0x8000 : 0));
                    };
                    between.insert(between.end(), {sign * middle, sign * std::nextafter(middle, 0.0F),
                                                   sign * std::nextafter(middle, INFINITY)});
                    expected.insert(expected.end(), {with_sign(code % 2 ? code + 1 : code), with_sign(code),
                                                     with_sign(code + 1)});
                }
            }
            std::vector<std::uint16_t> actual(between.size());
            format.encode(between, actual, set);
            for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_EQ(actual[i], expected[i]) << between[i];
        }
    }
}

TEST(HalfPrecision, too_large_becomes_infinite) {
    for (const auto set : test::supported_sets()) {
        const std::vector<float> values = {65519.0F, 65520.0F, -1e30F, INFINITY, 3.4e38F};
        std::vector<std::uint16_t> codes(values.size());
        kernels::fp16_encode(values, codes, set);
        EXPECT_EQ(codes, (std::vector<std::uint16_t>{0x7bff, 0x7c00, 0xfc00, 0x7c00, 0x7c00}));
        kernels::bf16_encode(values, codes, set);
        EXPECT_EQ(codes[3], 0x7f80);
        EXPECT_EQ(codes[4], 0x7f80);
    }
}

TEST(HalfPrecision, every_instruction_set_gives_the_same_bits_for_any_input) {
    const RandomStream random(20, "bits");
    std::vector<float> values(100003);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto bits = static_cast<std::uint32_t>(random.bits(i));
        std::memcpy(&values[i], &bits, sizeof(bits));
    }
    for (const Format& format : kFormats) {
        std::vector<std::uint16_t> expected(values.size());
        format.encode(values, expected, InstructionSet::baseline);
        for (const auto set : test::supported_sets()) {
            std::vector<std::uint16_t> actual(values.size());
            format.encode(values, actual, set);
            EXPECT_EQ(actual, expected) << name(set);
        }
    }
}

}  // namespace
}  // namespace atl
