// Packets: compression never costs bytes, and no damaged or foreign packet is taken for a good one.
#include "codec/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "codec/error_feedback.h"
#include "core/random.h"

namespace atl {
namespace {

std::vector<float> normal_values(std::size_t count, std::uint64_t seed) {
    const RandomStream random(seed, "values");
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(random.normal(i));
    return values;
}

ReadPacket read(const Packet& packet, std::span<const std::byte> header, std::span<const std::byte> body,
                const Codec& codec) {
    return read_packet(header, packet.owner, body, xxh3_64(body), codec, packet.elements);
}

class PacketTest : public testing::TestWithParam<const Codec*> {
  protected:
    // Smooth enough that zstd helps every codec.
    static std::vector<float> compressible() {
        auto values = normal_values(60'000, 1);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 8 == 0 ? values[i] : 0.0F;
        return values;
    }
    const Codec& codec_ = *GetParam();
};

TEST_P(PacketTest, what_is_encoded_is_read_and_decoded_with_and_without_zstd) {
    const auto values = compressible();
    std::vector<float> plain(values.size());
    std::vector<float> compressed(values.size());
    for (auto [zstd, output] : {std::pair(false, &plain), std::pair(true, &compressed)}) {
        const auto packet = PacketEncoder(codec_, zstd).encode(values);
        ASSERT_TRUE(packet);
        EXPECT_EQ(packet->is_compressed, zstd);
        const auto again = read(*packet, packet->header, packet->body, codec_);
        ASSERT_TRUE(again.packet) << again.problem;
        PacketDecoder decoder(codec_);
        EXPECT_EQ(decoder.verify(*again.packet), "");
        decoder.decode(*again.packet, *output);
        EXPECT_EQ(again.packet->digest(), packet->digest());
    }
    EXPECT_EQ(plain, compressed);
}

TEST_P(PacketTest, zstd_is_never_larger_and_random_mantissas_stay_as_they_are) {
    const RandomStream random(3, "bits");
    for (const std::size_t count : {0U, 1U, 100U, 65536U}) {
        std::vector<float> noise(count);
        for (std::size_t i = 0; i < count; ++i) noise[i] = static_cast<float>(random.uniform(i));
        const auto plain = PacketEncoder(codec_, false).encode(noise);
        const auto packed = PacketEncoder(codec_, true).encode(noise);
        ASSERT_TRUE(plain && packed);
        EXPECT_LE(packed->bytes(), plain->bytes());
        EXPECT_EQ(plain->bytes(), 32 + codec_.body_bytes(static_cast<std::int64_t>(count)));
    }
}

TEST_P(PacketTest, every_truncated_or_changed_packet_is_refused) {
    const auto values = compressible();
    for (const bool zstd : {false, true}) {
        const auto packet = PacketEncoder(codec_, zstd).encode(std::span(values).first(300));
        ASSERT_TRUE(packet);
        for (std::size_t length = 0; length < packet->header.size(); ++length) {
            ASSERT_FALSE(read(*packet, std::span(packet->header).first(length), packet->body, codec_).packet);
        }
        for (std::size_t length = 0; length < packet->body.size(); ++length) {
            ASSERT_FALSE(read(*packet, packet->header, packet->body.first(length), codec_).packet);
        }
        for (std::size_t byte = 0; byte < packet->header.size(); ++byte) {
            auto header = packet->header;
            header[byte] ^= std::byte{4};
            ASSERT_FALSE(read(*packet, header, packet->body, codec_).packet) << byte;
        }
        std::vector<std::byte> body(packet->body.begin(), packet->body.end());
        for (std::byte& byte : body) {
            byte ^= std::byte{4};
            ASSERT_FALSE(read(*packet, packet->header, body, codec_).packet);
            byte ^= std::byte{4};
        }
    }
}

// A packet that is intact by its checksums, yet made by somebody who means no good or has another program.
TEST_P(PacketTest, well_formed_headers_around_random_bodies_never_crash_the_decoder) {
    const RandomStream random(11, "fuzz");
    PacketDecoder decoder(codec_);
    const auto values = compressible();
    const auto packet = PacketEncoder(codec_, true).encode(std::span(values).first(2000));
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->is_compressed, codec_.id() != CodecId::top_k);  // which has too few bytes for it
    int refused = 0;
    for (std::uint64_t trial = 0; trial < 3000; ++trial) {
        std::vector<std::byte> body(packet->body.begin(), packet->body.end());
        for (std::uint64_t change = 0; change < 1 + trial % 5; ++change) {
            body[random.below(trial * 16 + change, body.size())] ^=
                std::byte(1 + random.below(trial * 16 + change + 8, 255));
        }
        Packet forged = *packet;
        forged.body = body;
        const std::string problem = decoder.verify(forged);
        refused += !problem.empty();
        if (problem.empty()) {
            std::vector<float> output(2000);
            decoder.decode(forged, output);
        }
    }
    EXPECT_GT(refused, 100);
}

TEST_P(PacketTest, a_packet_of_another_size_or_codec_is_refused_with_the_reason) {
    const auto packet = PacketEncoder(codec_, false).encode(normal_values(100, 5));
    ASSERT_TRUE(packet);
    const auto wrong_size =
        read_packet(packet->header, packet->owner, packet->body, packet->body_hash, codec_, 99);
    EXPECT_NE(wrong_size.problem.find("100 elements; the chunk has 99"), std::string::npos);
    const Codec& other = codec_from_name(codec_.id() == CodecId::int8 ? "fp16" : "int8");
    const auto wrong_codec =
        read_packet(packet->header, packet->owner, packet->body, packet->body_hash, other, 100);
    EXPECT_NE(wrong_codec.problem.find("was agreed"), std::string::npos);
}

TEST_P(PacketTest, values_that_are_not_finite_make_no_packet) {
    auto values = normal_values(100, 6);
    values[50] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(PacketEncoder(codec_, true).encode(values));
    EXPECT_FALSE(PacketEncoder(codec_, false).encode(values, std::make_shared<int>(0)));
}

INSTANTIATE_TEST_SUITE_P(All, PacketTest, testing::ValuesIn(all_codecs()),
                         [](const auto& info) { return std::string(info.param->name()); });

TEST(Packet, an_owned_identity_body_is_the_values_themselves) {
    const auto values = std::make_shared<std::vector<float>>(normal_values(100, 7));
    const auto packet = PacketEncoder(codec_from_name("identity"), false).encode(*values, values);
    ASSERT_TRUE(packet);
    EXPECT_EQ(static_cast<const void*>(packet->body.data()), values->data());
    EXPECT_EQ(values.use_count(), 2);
}

// Over committed rounds Σ q = Σ Δ − e − (1 − β)·Σ e before each; a round that was not committed leaves e as it was.
TEST(ErrorFeedback, what_was_sent_and_the_residual_make_up_what_was_put_in) {
    constexpr std::size_t kCount = 5000;
    for (const char* name : {"top_k_64", "sign", "int8"}) {
        for (const float beta : {1.0F, 0.95F, 0.5F}) {
            const Codec& codec = codec_from_name(name);
            PacketDecoder decoder(codec);
            std::vector<float> residual(kCount);
            std::vector<double> balance(kCount);  // Σ Δ − Σ q − (1 − β)·Σ e
            for (std::uint64_t round = 0; round < 20; ++round) {
                auto values = normal_values(kCount, 100 + round);
                if (round % 5 != 4)
                    for (std::size_t i = 0; i < kCount; ++i)
                        balance[i] += values[i] - (1 - double(beta)) * residual[i];
                add_residual(residual, beta, values);
                const auto packet = PacketEncoder(codec, true).encode(values);
                ASSERT_TRUE(packet);
                subtract_decoded(decoder, *packet, values);
                if (round % 5 == 4) continue;
                std::vector<float> decoded(kCount);
                decoder.decode(*packet, decoded);
                residual = values;
                for (std::size_t i = 0; i < kCount; ++i) balance[i] -= decoded[i];
            }
            for (std::size_t i = 0; i < kCount; ++i)
                ASSERT_NEAR(balance[i], residual[i], 1e-5) << name << " " << beta;
        }
    }
}

TEST(ErrorFeedback, what_is_lost_is_the_rounded_difference_to_what_others_decode) {
    for (const Codec* codec : all_codecs()) {
        const auto values = normal_values(5000, 8);
        const auto packet = PacketEncoder(*codec, true).encode(values);
        PacketDecoder decoder(*codec);
        std::vector<float> decoded(values.size());
        decoder.decode(*packet, decoded);
        auto lost = values;
        subtract_decoded(decoder, *packet, lost);
        for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(lost[i], values[i] - decoded[i]);
    }
}

// A coordinate that moves little but always the same way is sent at least once in chunk/k rounds or so.
TEST(ErrorFeedback, every_coordinate_is_sent_in_the_end) {
    const Codec& codec = codec_from_name("top_k_64");
    PacketDecoder decoder(codec);
    std::vector<float> residual(4096);
    std::vector<bool> was_sent(4096);
    for (std::uint64_t round = 0; round < 2 * 64; ++round) {
        std::vector<float> values(4096);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<float>(i % 7) / 10;
        add_residual(residual, 1, values);
        const auto packet = PacketEncoder(codec, false).encode(values);
        std::vector<float> decoded(4096);
        decoder.decode(*packet, decoded);
        subtract_decoded(decoder, *packet, values);
        residual = values;
        for (std::size_t i = 0; i < decoded.size(); ++i) was_sent[i] = was_sent[i] || decoded[i] != 0;
    }
    EXPECT_EQ(std::ranges::count(was_sent, true), 4096);
}

}  // namespace
}  // namespace atl
