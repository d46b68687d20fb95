// Eight- and sixteen-bit codes: their definition, their error on known distributions, the same bits under every
// instruction set, edge values.
#include <cstring>

#include "core/check.h"
#include "kernels/half_precision.h"
#include "kernels/int8_code.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

using kernels::InstructionSet;
using kernels::Moments;
using test::normal_values;

constexpr int kSizes[] = {1, 2, 3, 15, 16, 17, 255, 1024, 1025, 70001};

struct Encoded {
    Moments moments;
    std::vector<std::uint8_t> codes;
    std::array<float, 256> codebook;
};

Encoded encode(const std::vector<float>& values, InstructionSet set) {
    Encoded encoded{kernels::moments(values, set), std::vector<std::uint8_t>(values.size()), {}};
    kernels::int8_encode(values, encoded.moments, encoded.codes, encoded.codebook, set);
    return encoded;
}

std::vector<float> decode(const Encoded& encoded, InstructionSet set) {
    std::vector<float> values(encoded.codes.size());
    kernels::int8_decode(encoded.codes, encoded.codebook, values, set);
    return values;
}

double relative_rms_error(const std::vector<float>& values, const std::vector<float>& decoded) {
    double error = 0;
    double square = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        error += std::pow(static_cast<double>(values[i]) - decoded[i], 2);
        square += std::pow(static_cast<double>(values[i]), 2);
    }
    return std::sqrt(error / square);
}

TEST(Int8Code, moments_are_the_mean_and_the_sample_deviation) {
    for (const int size : kSizes) {
        auto values = normal_values<float>(size, 1, 0.01);
        for (float& value : values) value += 100;  // far from zero: no cancellation allowed
        double mean = 0;
        for (const float value : values) mean += value / static_cast<double>(size);
        double square = 0;
        for (const float value : values) square += std::pow(value - mean, 2);
        for (const auto set : test::supported_sets()) {
            const Moments moments = kernels::moments(values, set);
            EXPECT_FLOAT_EQ(moments.mean, static_cast<float>(mean));
            const double sigma = size < 2 ? 0 : std::sqrt(square / (size - 1));
            EXPECT_NEAR(moments.sigma, sigma, 1e-6 * sigma);
        }
    }
}

TEST(Int8Code, every_instruction_set_gives_the_same_bits) {
    for (const int size : kSizes) {
        auto values = normal_values<float>(size, 2);
        for (std::size_t i = 0; i < values.size(); i += 50) values[i] *= 40;  // some are clipped
        const Encoded expected = encode(values, InstructionSet::baseline);
        auto expected_sum = normal_values<float>(size, 3);
        kernels::int8_decode_add(expected.codes, expected.codebook, 0.3F, expected_sum,
                                 InstructionSet::baseline);
        for (const auto set : test::supported_sets()) {
            const Encoded actual = encode(values, set);
            EXPECT_EQ(std::memcmp(&actual.moments, &expected.moments, sizeof(Moments)), 0) << name(set);
            EXPECT_EQ(actual.codes, expected.codes) << name(set);
            EXPECT_EQ(actual.codebook, expected.codebook) << name(set);
            EXPECT_EQ(decode(actual, set), decode(expected, InstructionSet::baseline)) << name(set);
            auto sum = normal_values<float>(size, 3);
            kernels::int8_decode_add(expected.codes, expected.codebook, 0.3F, sum, set);
            EXPECT_EQ(sum, expected_sum) << name(set);
        }
    }
}

TEST(Int8Code, codes_and_codebook_follow_their_definition) {
    const auto values = normal_values<float>(5000, 4, 3);
    const Encoded encoded = encode(values, kernels::best_instruction_set());
    const float step = encoded.moments.sigma * (12.0F / 256);
    std::array<double, 256> sums{};
    std::array<int, 256> counts{};
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float bin = std::nearbyint((values[i] - encoded.moments.mean) * (1 / step)) + 128;
        ASSERT_EQ(encoded.codes[i], std::clamp(bin, 0.0F, 255.0F));
        sums[encoded.codes[i]] += values[i];
        ++counts[encoded.codes[i]];
    }
    for (int bin = 0; bin < 256; ++bin) {
        const double mean = counts[bin] == 0 ? 0 : sums[bin] / counts[bin];
        EXPECT_NEAR(encoded.codebook[bin], mean, 2e-6 * step * 128) << bin;
    }
}

TEST(Int8Code, clipped_values_count_in_the_outermost_bins) {
    auto values = normal_values<float>(100003, 8);
    values[7] = 90;
    values[50000] = 70;
    values[100002] = -250;
    for (const auto set : test::supported_sets()) {
        const Encoded encoded = encode(values, set);
        EXPECT_EQ(encoded.codes[7], 255);
        EXPECT_EQ(encoded.codes[100002], 0);
        EXPECT_NEAR(encoded.codebook[255], 80, 1e-4);
        EXPECT_NEAR(encoded.codebook[0], -250, 1e-4);
    }
}

TEST(Int8Code, error_and_bias_are_those_of_six_sigma_bins) {
    const RandomStream random(20, "laplace");
    const auto gaussian = normal_values<float>(200000, 5);
    std::vector<float> laplace(gaussian.size());
    for (std::size_t i = 0; i < laplace.size(); ++i) {
        laplace[i] =
            static_cast<float>(std::log(1 - random.uniform(i)) * (random.bits(i + 1000000) % 2 ? 1 : -1));
    }
    const auto set = kernels::best_instruction_set();
    EXPECT_NEAR(relative_rms_error(gaussian, decode(encode(gaussian, set), set)), 0.0135, 0.0005);
    EXPECT_NEAR(relative_rms_error(laplace, decode(encode(laplace, set), set)), 0.0156, 0.002);
    double difference = 0;
    const auto decoded = decode(encode(laplace, set), set);
    for (std::size_t i = 0; i < laplace.size(); ++i)
        difference += static_cast<double>(laplace[i]) - decoded[i];
    EXPECT_NEAR(difference, 0, 1e-2);  // of 200,000 values: bins are unbiased, the clipped ones too
}

TEST(Int8Code, equal_values_decode_exactly) {
    for (const float value : {0.0F, -3.25F, 1e-30F, 1e30F}) {
        const std::vector<float> values(100, value);
        for (const auto set : test::supported_sets()) {
            const Encoded encoded = encode(values, set);
            EXPECT_EQ(encoded.moments.sigma, 0);
            EXPECT_EQ(decode(encoded, set), values);
        }
    }
}

TEST(Int8Code, values_too_close_together_for_a_step_decode_to_their_mean) {
    const std::vector<float> values = {1e-45F, 2e-45F, 0.0F, 3e-45F};
    for (const auto set : test::supported_sets()) {
        for (const float value : decode(encode(values, set), set)) EXPECT_NEAR(value, 1.5e-45, 2e-45);
    }
}

TEST(Int8Code, non_finite_values_show_in_the_moments_and_are_refused) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
        for (const std::size_t place : {0, 5, 39}) {
            auto values = normal_values<float>(40, 6);
            values[place] = bad;
            for (const auto set : test::supported_sets()) {
                EXPECT_FALSE(kernels::moments(values, set).is_finite());
                EXPECT_THROW(encode(values, set), CheckError);
            }
        }
    }
}

TEST(Int8Code, a_nan_beside_foreign_moments_spoils_the_codebook_and_no_memory) {
    std::vector<float> values(100, NAN);
    std::vector<std::uint8_t> codes(values.size());
    std::array<float, 256> codebook;
    for (const auto set : test::supported_sets()) {
        kernels::int8_encode(values, Moments{0, 1}, codes, codebook, set);
        EXPECT_EQ(codes, std::vector<std::uint8_t>(100, codes[0]));
    }
}

TEST(Int8Code, weight_minus_one_leaves_the_residual) {
    const auto values = normal_values<float>(333, 7);
    const auto set = kernels::best_instruction_set();
    const Encoded encoded = encode(values, set);
    const auto sent = decode(encoded, set);
    auto residual = values;
    kernels::int8_decode_add(encoded.codes, encoded.codebook, -1.0F, residual, set);
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(residual[i], values[i] - sent[i]);
}

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
