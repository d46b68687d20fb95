// Frames: what is written is read, what was changed on the way is refused, and the bytes never drift.
#include "comm/site/frame.h"

#include <gtest/gtest.h>

#include "core/hash.h"
#include "core/random.h"
#include "support/site_transport.h"

namespace atl {
namespace {

using test::packet_frame;

TEST(Frame, what_is_written_is_read_back) {
    const Frame frame = packet_frame(3, "body", 9);
    const auto read = read_frame(write_head(frame, 42), frame.body, 42);
    ASSERT_TRUE(read.frame) << read.problem;
    EXPECT_EQ(read.frame->to, frame.to);
    EXPECT_EQ(read.frame->round, frame.round);
    EXPECT_EQ(read.frame->chunk, 9);
    EXPECT_EQ(read.frame->prefix, frame.prefix);
}

TEST(Frame, any_flipped_bit_of_the_head_is_noticed) {
    const Frame frame = packet_frame(3, "body");
    const auto head = write_head(frame, 42);
    for (std::size_t byte = 0; byte < head.size(); ++byte) {
        for (int bit = 0; bit < 8; ++bit) {
            auto changed = head;
            changed[byte] ^= std::byte(1 << bit);
            ASSERT_FALSE(read_frame(changed, frame.body, 42).frame) << "byte " << byte << " bit " << bit;
        }
    }
}

TEST(Frame, any_flipped_bit_of_the_body_is_noticed) {
    const Frame frame = packet_frame(3, "some body that is not so short");
    const auto head = write_head(frame, 42);
    for (std::size_t byte = 0; byte < frame.body.size(); ++byte) {
        std::vector<std::byte> changed(frame.body.bytes().begin(), frame.body.bytes().end());
        changed[byte] ^= std::byte{0x20};
        ASSERT_FALSE(read_frame(head, Payload::own(changed), 42).frame);
    }
}

TEST(Frame, every_truncation_and_random_noise_is_refused_with_a_reason) {
    const Frame frame = packet_frame(3, "body");
    const auto head = write_head(frame, 42);
    for (std::size_t length = 0; length < head.size(); ++length) {
        const auto read = read_frame(std::span(head).first(length), frame.body, 42);
        ASSERT_FALSE(read.frame);
        ASSERT_FALSE(read.problem.empty());
    }
    const RandomStream random(1, "noise");
    for (std::uint64_t trial = 0; trial < 2000; ++trial) {
        std::vector<std::byte> noise(random.below(trial, 200));
        for (std::size_t i = 0; i < noise.size(); ++i)
            noise[i] = std::byte(random.bits(trial * 1000 + i) & 0xFF);
        ASSERT_FALSE(read_frame(noise, {}, 42).frame);
    }
}

TEST(Frame, a_frame_of_another_run_is_refused_by_name) {
    const Frame frame = packet_frame(3, "body");
    EXPECT_EQ(read_frame(write_head(frame, 42), frame.body, 43).problem, "frame of another run");
}

TEST(Frame, the_bytes_are_those_of_the_format) {
    const auto head = write_head(packet_frame(3, "body", 9), 42);
    ASSERT_EQ(head.size(), 90u);
    EXPECT_EQ(head[0], std::byte{0x41});
    EXPECT_EQ(head[3], std::byte{0x46});
    EXPECT_EQ(head[4], std::byte{1});
    EXPECT_EQ(head[5], std::byte{17});
    EXPECT_EQ(head[8], std::byte{42});
    EXPECT_EQ(head[20], std::byte{3});
    EXPECT_EQ(head[40], std::byte{7});
    EXPECT_EQ(head[56], std::byte{9});
    EXPECT_EQ(head[64], std::byte{4});
    EXPECT_EQ(xxh3_128(head).hex(), "7df0f3aae91a9dbce3b3cacc367536d0");
}

}  // namespace
}  // namespace atl
