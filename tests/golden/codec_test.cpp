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
    {"int8", {"99f4e7dc349286187011c3bbd606d292", "078dd35dd4c77ffaca0cf5ecbd47243b"}},
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
