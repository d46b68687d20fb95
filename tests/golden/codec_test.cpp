// The bytes of every packet and of the values they decode to never drift. Inputs are pure functions of the index.
#include <gtest/gtest.h>

#include <map>

#include "codec/packet.h"

namespace atl {
namespace {

std::vector<float> input() {
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) {
        // Uneven, of both signs, with a few large ones; exact in fp32.
        const auto k = static_cast<int>(i * 7919 % 1000) - 500;
        values[i] = static_cast<float>(k) / 256.0F * (i % 97 == 0 ? 8.0F : 1.0F);
    }
    return values;
}

struct Golden {
    std::string packet;   // XXH3-128 of header and body
    std::string decoded;  // of the fp32 values
};

const std::map<std::string_view, Golden> kGolden = {
    {"identity", {"1d54b77c8b12a6d4c22c8fbc62fcfa9c", "548c135d8400e2e6aec5095fb63a0565"}},
    {"fp16", {"73049956ac98145fb5476922276a187a", "548c135d8400e2e6aec5095fb63a0565"}},
    {"bf16", {"1e96e5125e0c5823e9e2b457ccd3774c", "65d8fb60bb81dfa9186b85ec4e34a957"}},
    {"int8", {"0d489333159d8b31941c1e988e5a06ec", "3a0ddb9de2757dc28474f08c1efe1a54"}},
    {"int4", {"8fc941ba15d40cc86fce233e682e896d", "4ce38b70e48c0fcf361b08412fd8e085"}},
    {"e3m0", {"29092c5aa56bc4462aaf538a4895afd4", "d0ab09f26798d41bff54828a2b404f46"}},
    {"top_k_64", {"f84ce81b4eb1b3951772b329b049f52c", "7dc6e23e69ed07c45c27491c11e67c6a"}},
    {"sign", {"7408994a4f90d9dd6ed13e09daba18d5", "6ff8a27869218a445b373d321ecf312c"}},
};

TEST(GoldenPackets, bytes_and_decoded_values_are_those_of_the_format) {
    const auto values = input();
    for (const Codec* each : all_codecs()) {
        const auto packet = PacketEncoder(*each, false).encode(values);
        ASSERT_TRUE(packet);
        std::vector<std::byte> bytes(packet->header.begin(), packet->header.end());
        bytes.insert(bytes.end(), packet->body.begin(), packet->body.end());
        std::vector<float> decoded(values.size());
        PacketDecoder(*each).decode(*packet, decoded);
        const Golden& golden = kGolden.at(each->name());
        EXPECT_EQ(xxh3_128(bytes).hex(), golden.packet) << each->name();
        EXPECT_EQ(xxh3_128(std::as_bytes(std::span(decoded))).hex(), golden.decoded) << each->name();
    }
}

std::vector<int> body_of(std::string_view codec, const std::vector<float>& values) {
    const auto packet = PacketEncoder(codec_from_name(codec), false).encode(values);
    std::vector<int> body;
    for (const std::byte byte : packet->body) body.push_back(static_cast<int>(byte));
    return body;
}

TEST(GoldenPackets, narrow_bodies_are_laid_out_as_documented) {
    using Bytes = std::vector<int>;
    EXPECT_EQ(body_of("int8", {127, -3, 1}), (Bytes{0xFE, 0x42, 127, 0xFD, 1}));
    EXPECT_EQ(body_of("int4", {7, -3, 1}), (Bytes{0xE0, 0x40, 7 | 1 << 4, 13}));
    EXPECT_EQ(body_of("e3m0", {1, -0.5, 0.25}), (Bytes{0x80, 0x3F, 7 | 5 << 4, 8 | 6}));
    EXPECT_EQ(body_of("sign", {1, -1, 1, 1, 1, 1, 1, 1, -1}), (Bytes{0x80, 0x3F, 0x10, 0x01}));
}

TEST(GoldenPackets, the_header_is_laid_out_as_documented) {
    const auto packet = PacketEncoder(codec_from_name("bf16"), false).encode(input());
    ASSERT_TRUE(packet);
    const auto& header = packet->header;
    const std::vector<std::byte> start(header.begin(), header.begin() + 16);
    const std::vector<std::byte> expected = {std::byte{'A'}, std::byte{'T'}, std::byte{'L'}, std::byte{'P'},
                                             std::byte{1},   std::byte{3},   std::byte{0},   std::byte{0},
                                             std::byte{232}, std::byte{3},   std::byte{0},   std::byte{0},
                                             std::byte{0},   std::byte{0},   std::byte{0},   std::byte{0}};
    EXPECT_EQ(start, expected);
    EXPECT_EQ(packet->bytes(), 32 + 2000);
}

}  // namespace
}  // namespace atl
