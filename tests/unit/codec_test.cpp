// Codecs: sizes are the formula, errors stay within their bounds, sums are kept, edge cases are exact.
#include "codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "config/wire_codec.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/random.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

std::vector<float> normal_values(std::size_t count, std::uint64_t seed, double scale = 1.0) {
    const RandomStream random(seed, "values");
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(scale * random.normal(i));
    return values;
}

std::vector<std::byte> encoded(const Codec& codec, std::span<const float> values) {
    std::vector<std::byte> body(
        static_cast<std::size_t>(codec.body_bytes(static_cast<std::int64_t>(values.size()))));
    EXPECT_TRUE(codec.encode(values, body));
    EXPECT_TRUE(codec.is_finite({body, static_cast<std::int64_t>(values.size())}));
    return body;
}

std::vector<float> decoded(const Codec& codec, std::span<const std::byte> body, std::size_t count) {
    std::vector<float> values(count, -1.0F);
    codec.decode({body, static_cast<std::int64_t>(count)}, 0, values);
    return values;
}

std::vector<float> there_and_back(const Codec& codec, std::span<const float> values) {
    return decoded(codec, encoded(codec, values), values.size());
}

double relative_rms_error(std::span<const float> input, std::span<const float> output) {
    double error = 0;
    double power = 0;
    for (std::size_t i = 0; i < input.size(); ++i) {
        error += std::pow(double(input[i]) - output[i], 2);
        power += std::pow(double(input[i]), 2);
    }
    return std::sqrt(error / power);
}

class CodecTest : public testing::TestWithParam<const Codec*> {
  protected:
    const Codec& codec_ = *GetParam();
};

TEST_P(CodecTest, equal_values_come_back_exactly_also_when_all_are_zero_or_there_is_one_or_none) {
    for (const float value : {0.0F, 1.0F, -2.5F, 0.125F}) {
        for (const std::size_t count : {0U, 1U, 2U, 255U, 5000U}) {
            const std::vector<float> values(count, value);
            if (codec_.id() == CodecId::top_k && count > 1 && value != 0) continue;  // drops most of them
            EXPECT_EQ(there_and_back(codec_, values), values)
                << codec_.name() << " " << count << " × " << value;
        }
    }
}

TEST_P(CodecTest, values_that_are_not_finite_are_refused_wherever_they_stand) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
        for (const std::size_t place : {0U, 1U, 2047U, 2048U, 4999U}) {
            auto values = normal_values(5000, 1);
            values[place] = bad;
            std::vector<std::byte> body(static_cast<std::size_t>(codec_.body_bytes(5000)));
            EXPECT_FALSE(codec_.encode(values, body)) << codec_.name() << " at " << place;
        }
    }
}

TEST_P(CodecTest, denormal_one_sided_and_lonely_values_stay_finite_and_close) {
    auto lonely = std::vector<float>(4096, 0.0F);
    lonely[17] = 1e30F;
    for (auto values : {normal_values(4096, 2, 1e-41), normal_values(4096, 3, 1e-20)}) {
        for (float& value : values) value = -std::abs(value);
        for (const float value : there_and_back(codec_, values)) ASSERT_LE(std::abs(value), 1e-19F);
    }
    if (codec_.id() == CodecId::fp16) return;  // 1e30 is beyond its range
    if (codec_.id() == CodecId::sign) return;  // one magnitude for the whole block
    const auto output = there_and_back(codec_, lonely);
    EXPECT_NEAR(output[17], 1e30F, 1e28F);
    EXPECT_LT(std::abs(output[18]), 1e20F);  // a zero beside it
}

TEST_P(CodecTest, decode_add_is_the_weighted_sum_with_every_operation_rounded) {
    const auto values = normal_values(3001, 4);
    const auto body = encoded(codec_, values);
    const auto plain = decoded(codec_, body, values.size());
    auto sum = normal_values(3001, 5);
    auto expected = sum;
    for (std::size_t i = 0; i < plain.size(); ++i) {
        volatile const float product = 0.3F * plain[i];
        expected[i] = expected[i] + product;
    }
    codec_.decode_add({body, 3001}, 0, 0.3F, sum);
    EXPECT_EQ(sum, expected);
}

TEST_P(CodecTest, a_body_may_lie_at_any_address) {
    const auto values = normal_values(3001, 6);
    const auto body = encoded(codec_, values);
    const auto expected = decoded(codec_, body, values.size());
    for (std::size_t shift = 1; shift < 4; ++shift) {
        std::vector<std::byte> shifted(body.size() + shift);
        std::ranges::copy(body, shifted.begin() + static_cast<std::ptrdiff_t>(shift));
        const std::span<const std::byte> view = std::span<const std::byte>(shifted).subspan(shift);
        EXPECT_EQ(decoded(codec_, view, values.size()), expected);
        std::vector<float> sum(values.size(), 0.0F);
        codec_.decode_add({view, 3001}, 0, 1.0F, sum);
        EXPECT_EQ(sum, expected);
        EXPECT_TRUE(codec_.is_finite({view, 3001}));
    }
}

TEST_P(CodecTest, any_part_of_a_body_decodes_as_it_does_within_the_whole) {
    const auto values = normal_values(5000, 10);
    const auto body = encoded(codec_, values);
    const auto whole = decoded(codec_, body, values.size());
    for (const auto& [first, count] : {std::pair(0, 1), std::pair(1, 2048), std::pair(2047, 2953)}) {
        std::vector<float> part(static_cast<std::size_t>(count));
        codec_.decode({body, 5000}, static_cast<std::size_t>(first), part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first));
        std::vector<float> sum(part.size(), 0.0F);
        codec_.decode_add({body, 5000}, static_cast<std::size_t>(first), 1.0F, sum);
        EXPECT_EQ(sum, part);
    }
}

TEST_P(CodecTest, a_codec_is_found_by_its_name) {
    EXPECT_EQ(&codec_from_name(codec_.name(), codec_.instruction_set()), &codec_);
}

std::vector<const Codec*> codecs_on_every_instruction_set() {
    std::vector<const Codec*> codecs;
    for (const auto set : test::supported_sets())
        codecs.insert(codecs.end(), all_codecs(set).begin(), all_codecs(set).end());
    return codecs;
}

INSTANTIATE_TEST_SUITE_P(All, CodecTest, testing::ValuesIn(codecs_on_every_instruction_set()),
                         [](const auto& info) {
                             return fmt::format("{}_{}", info.param->name(),
                                                name(info.param->instruction_set()));
                         });

TEST(Codec, body_sizes_are_the_formula) {
    for (const std::int64_t n : {0, 1, 1000, 65536}) {
        EXPECT_EQ(codec_from_name("identity").body_bytes(n), 4 * n);
        EXPECT_EQ(codec_from_name("fp16").body_bytes(n), 2 * n);
        EXPECT_EQ(codec_from_name("bf16").body_bytes(n), 2 * n);
        EXPECT_EQ(codec_from_name("int8").body_bytes(n), 2 * ((n + 511) / 512) + n);
        EXPECT_EQ(codec_from_name("int4").body_bytes(n), 2 * ((n + 63) / 64) + (n + 1) / 2);
        EXPECT_EQ(codec_from_name("e3m0").body_bytes(n), 2 * ((n + 255) / 256) + (n + 1) / 2);
        EXPECT_EQ(codec_from_name("sign").body_bytes(n), 2 * ((n + 255) / 256) + (n + 7) / 8);
    }
}

TEST(Codec, errors_on_normal_values_stay_within_their_bounds) {
    const auto values = normal_values(65536, 7);
    const auto error = [&](std::string_view name) {
        return relative_rms_error(values, there_and_back(codec_from_name(name), values));
    };
    EXPECT_EQ(error("identity"), 0.0);
    EXPECT_LT(error("fp16"), std::pow(2.0, -11));
    EXPECT_LT(error("bf16"), std::pow(2.0, -8));
    EXPECT_NEAR(error("int8"), 0.0073, 0.0003);  // a 127th of the largest of 512, over sqrt(12)
    EXPECT_NEAR(error("int4"), 0.108, 0.005);    // a 7th of the largest of 64, over sqrt(12)
    EXPECT_NEAR(error("e3m0"), 0.19, 0.02);
    EXPECT_NEAR(error("sign"), std::sqrt(1 - 2 / std::numbers::pi), 0.005);
    EXPECT_NEAR(error("top_k_64"), 0.939, 0.005);  // what the largest 64 of 4096 leave
}

// Nothing is clipped and the nearest code is taken, so errors have no direction: of n values they sum to √n of one's.
TEST(Codec, int8_keeps_the_sum_of_a_chunk_but_for_the_noise_of_its_rounding) {
    for (const double tail : {1.0, 3.0}) {  // 3: heavy-tailed
        auto values = normal_values(65536, 8);
        for (float& value : values)
            value = static_cast<float>(std::copysign(std::pow(std::abs(value), tail), value));
        const auto output = there_and_back(codec_from_name("int8"), values);
        const double input_sum = std::accumulate(values.begin(), values.end(), 0.0);
        const double output_sum = std::accumulate(output.begin(), output.end(), 0.0);
        const double error = relative_rms_error(values, output);
        const double power = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
        EXPECT_LE(std::abs(input_sum - output_sum), 4 * error * std::sqrt(power));
    }
}

TEST(Codec, half_formats_round_to_nearest_even_and_refuse_what_does_not_fit) {
    const auto half = [](float value) {
        return there_and_back(codec_from_name("fp16"), std::vector<float>{value}).front();
    };
    EXPECT_EQ(half(1.0F + std::pow(2.0F, -11)), 1.0F);
    EXPECT_EQ(half(1.0F + 3 * std::pow(2.0F, -11)), 1.0F + std::pow(2.0F, -9));
    EXPECT_EQ(half(65504.0F), 65504.0F);
    std::vector<std::byte> body(2);
    EXPECT_FALSE(codec_from_name("fp16").encode(std::vector<float>{65520.0F}, body));
    EXPECT_FALSE(codec_from_name("bf16").encode(std::vector<float>{3.4e38F}, body));
    EXPECT_TRUE(codec_from_name("bf16").encode(std::vector<float>{3.38e38F}, body));
}

TEST(Codec, bodies_of_strangers_that_decode_to_nonsense_are_recognised) {
    for (const Codec* each : all_codecs()) {
        auto body = encoded(*each, normal_values(300, 9));
        std::ranges::fill(body, std::byte{0xFF});  // all formats read this as not a number
        EXPECT_FALSE(each->is_finite({body, 300})) << each->name();
    }
}

TEST(Codec, a_narrow_contribution_has_a_mean_of_eight_bits) {
    for (const char* dense : {"identity", "fp16", "bf16", "int8"})
        EXPECT_EQ(&mean_codec(codec_from_name(dense)), &codec_from_name(dense));
    for (const char* narrow : {"int4", "e3m0", "sign", "top_k_7"}) {
        for (const auto set : test::supported_sets())
            EXPECT_EQ(&mean_codec(codec_from_name(narrow, set)), &codec_from_name("int8", set));
    }
}

TEST(Codec, the_configuration_knows_what_each_codec_is) {
    for (const Codec* each : all_codecs()) {
        ExchangeConfig exchange;
        exchange.codec = each->id() == CodecId::top_k ? "top_k" : each->name();
        const WireCodec wire = wire_codec(exchange);
        EXPECT_EQ(&codec_from_name(wire.name), each);
        EXPECT_EQ(wire.gathered, is_gathered(*each)) << wire.name;
    }
    const auto name = [](double fraction) {
        ExchangeConfig exchange{.codec = "top_k", .top_k_fraction = fraction};
        return wire_codec(exchange).name;
    };
    EXPECT_EQ(name(1.0), "top_k_4096");
    EXPECT_EQ(name(1.0 / 32), "top_k_128");
    EXPECT_EQ(name(1e-9), "top_k_1");
}

TEST(Codec, top_k_with_a_number_is_one_codec_for_ever) {
    EXPECT_EQ(&codec_from_name("top_k_7"), &codec_from_name("top_k_7"));
    EXPECT_EQ(codec_from_name("top_k_7").body_bytes(4096), 4 + 2 + 11);
    EXPECT_EQ(&codec_from_name("top_k"), &codec_from_name("top_k_64"));
    for (const char* wrong : {"top_k_", "top_k_0", "top_k_4097", "top_k_7x", "top_k_-1"})
        EXPECT_THROW(codec_from_name(wrong), UserError) << wrong;
}

TEST(Codec, an_unknown_name_is_the_users_mistake_and_lists_what_exists) {
    try {
        codec_from_name("int9");
        FAIL();
    } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("identity, fp16, bf16, int8"), std::string::npos);
    }
}

}  // namespace
}  // namespace atl
