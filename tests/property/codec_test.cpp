// Laws of all codecs over random values of many kinds and sizes: the packet has the size of its formula, what is lost
// stays within the stated bound, and every instruction set writes and reads the same bits.
#include <cmath>

#include "codec/codec.h"
#include "kernels/outer_step.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

constexpr std::size_t kSizes[] = {0,   1,   2,   7,   63,   64,   65,   255,  256,
                                  257, 511, 512, 513, 1000, 4095, 4096, 4097, 12'345};

// Gaussian, heavy-tailed, sparse, one-sided, with blocks of very different size, subnormal, and about the least
// scale of a block.
std::vector<std::vector<float>> inputs(std::size_t count, std::uint64_t seed) {
    std::vector<std::vector<float>> all(7,
                                        test::normal_values<float>(static_cast<std::int64_t>(count), seed));
    const RandomStream random(seed, "shape");
    for (std::size_t i = 0; i < count; ++i) {
        all[1][i] *= static_cast<float>(std::exp(3 * random.normal(i)));
        if (random.below(i, 50) != 0) all[2][i] = 0;
        all[3][i] = -std::abs(all[3][i]) * 1e-3F;
        all[4][i] *= std::ldexp(1.0F, static_cast<int>(i / 256 % 40) - 28);
        all[5][i] *= 1e-39F;
        all[6][i] *= std::ldexp(1.0F, static_cast<int>(i / 512 % 24) - 136);
    }
    for (float& value : all[1]) value = std::min(60'000.0F, std::max(-60'000.0F, value));  // fp16 takes it
    return all;
}

std::vector<std::byte> encoded(const Codec& codec, std::span<const float> values) {
    std::vector<std::byte> body(
        static_cast<std::size_t>(codec.body_bytes(static_cast<std::int64_t>(values.size()))));
    EXPECT_TRUE(codec.encode(values, body)) << codec.name();
    return body;
}

template <class Check>
void for_every_input(const Check& check) {
    for (const std::uint64_t seed : {1, 2, 3}) {
        for (const std::size_t size : kSizes) {
            int kind = 0;
            for (const auto& values : inputs(size, seed)) {
                SCOPED_TRACE(fmt::format("seed {}, {} values of kind {}", seed, size, kind++));
                check(values);
            }
        }
    }
}

TEST(CodecLaws, every_instruction_set_writes_and_reads_the_same_bits) {
    for_every_input([](const std::vector<float>& values) {
        const auto elements = static_cast<std::int64_t>(values.size());
        for (const Codec* plain : all_codecs(kernels::InstructionSet::baseline)) {
            const auto body = encoded(*plain, values);
            std::vector<float> decoded(values.size());
            plain->decode({body, elements}, 0, decoded);
            auto sum = values;
            plain->decode_add({body, elements}, 0, 0.7F, sum);
            for (const auto set : test::supported_sets()) {
                const Codec& other = codec_from_name(plain->name(), set);
                ASSERT_EQ(encoded(other, values), body) << other.name() << name(set);
                std::vector<float> decoded_there(values.size());
                other.decode({body, elements}, 0, decoded_there);
                ASSERT_EQ(decoded_there, decoded) << other.name() << name(set);
                auto sum_there = values;
                other.decode_add({body, elements}, 0, 0.7F, sum_there);
                ASSERT_EQ(sum_there, sum) << other.name() << name(set);
            }
        }
    });
}

double square(double x) {
    return x * x;
}

// The largest |x − x̂| that each codec of its own element may make of a block of values; FORMAT.md has the bounds.
void expect_within_bound(const Codec& codec, std::span<const float> x, std::span<const float> decoded) {
    constexpr double kLeastScale = 0x1p-119;  // of a block
    constexpr double kSmallestNormal = 0x1p-126;
    double largest = 0;
    double magnitude = 0;
    double power = 0;
    for (const float value : x) {
        largest = std::max(largest, std::abs(double(value)));
        magnitude += std::abs(double(value));
        power += square(value);
    }
    double lost = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = std::abs(double(x[i]) - decoded[i]);
        const double size = std::abs(double(x[i]));
        lost += square(error);
        switch (codec.id()) {
            case CodecId::identity:
                ASSERT_EQ(error, 0);
                break;
            case CodecId::fp16:
                ASSERT_LE(error, std::max(size * 0x1p-11, 0x1p-25));
                break;
            case CodecId::bf16:
                ASSERT_LE(error, std::max(size * 0x1p-8, 0x1p-134));
                break;
            case CodecId::int8:
                ASSERT_LE(error, std::max(largest * (1 + 0x1p-7) / 254 * (1 + 0x1p-20), kLeastScale));
                break;
            case CodecId::int4:
                ASSERT_LE(error, std::max(largest * (1 + 0x1p-7) / 14 * (1 + 0x1p-20), kLeastScale));
                break;
            case CodecId::e3m0:
                ASSERT_LE(error, std::max(std::max(size / 3, largest * (1 + 0x1p-7) * 0x1p-7) * (1 + 0x1p-20),
                                          kLeastScale));
                break;
            case CodecId::sign:
            case CodecId::top_k:
                break;
        }
    }
    const double least = codec.id() == CodecId::sign ? kLeastScale : kSmallestNormal;
    const double tiny = static_cast<double>(x.size()) * square(least);
    if (codec.id() == CodecId::top_k) {
        double kept = 0;
        double count = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (decoded[i] == 0) continue;
            kept += std::abs(double(x[i]));
            ++count;
        }
        const double won = count > 0 ? square(kept) / count : 0;
        ASSERT_LE(lost, power - won + 0x1p-16 * power + tiny);
    }
    if (codec.id() == CodecId::sign) {
        const double exact = power - square(magnitude) / static_cast<double>(x.size());
        ASSERT_LE(lost, exact + 0x1p-16 * power + tiny);
    }
}

TEST(CodecLaws, what_is_lost_stays_within_the_bound) {
    for_every_input([](const std::vector<float>& values) {
        for (const Codec* codec : all_codecs()) {
            SCOPED_TRACE(codec->name());
            const auto body = encoded(*codec, values);
            std::vector<float> decoded(values.size());
            codec->decode({body, static_cast<std::int64_t>(values.size())}, 0, decoded);
            const std::size_t block = codec->id() == CodecId::int8    ? 512
                                      : codec->id() == CodecId::int4  ? 64
                                      : codec->id() == CodecId::top_k ? 4096
                                                                      : 256;
            for (std::size_t begin = 0; begin < values.size(); begin += block) {
                const std::size_t count = std::min(block, values.size() - begin);
                expect_within_bound(*codec, std::span(values).subspan(begin, count),
                                    std::span(decoded).subspan(begin, count));
            }
        }
    });
}

TEST(CodecLaws, what_is_decoded_is_larger_by_no_more_than_is_stated) {
    const auto check = [](const std::vector<float>& values) {
        for (const Codec* codec : all_codecs()) {
            const auto body = encoded(*codec, values);
            std::vector<float> decoded(values.size());
            codec->decode({body, static_cast<std::int64_t>(values.size())}, 0, decoded);
            const double norm = kernels::norm(values);
            if (norm < 1e-30) continue;
            EXPECT_LE(kernels::norm(decoded), codec->most_norm_gain() * norm * (1 + 1e-6)) << codec->name();
        }
    };
    for_every_input(check);
    // One large value in each block, and all others where they are rounded up.
    for (const float just_above : {0.5F / 127, 0.5F / 7, 0.75F / 64, 0.75F, std::ldexp(1.0F, -25)}) {
        std::vector<float> values(1024, just_above * 1.01F);
        for (std::size_t i = 0; just_above > 1e-6F && i < values.size(); i += 64) values[i] = 1;
        check(values);
    }
}

}  // namespace
}  // namespace atl
