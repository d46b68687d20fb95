// More than 2^31 elements: sizes and places are 64-bit everywhere. Memory is mapped, not filled: a body is all holes but
// for its end, and values are one small piece mapped again and again.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "codec/codec.h"
#include "core/check.h"
#include "support/kernel_testing.h"

namespace atl {
namespace {

constexpr std::int64_t kElements = (std::int64_t{1} << 31) + 4096 + 100;
constexpr std::size_t kPieceBytes = 32 << 20;

// Zeros that take no memory until they are written.
class Holes {
  public:
    explicit Holes(std::size_t bytes) : size_(bytes) {
        constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        begin_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
        ATOLL_CHECK(begin_ != MAP_FAILED, "{} bytes", bytes);
    }
    ~Holes() { munmap(begin_, size_); }
    Holes(const Holes&) = delete;
    Holes& operator=(const Holes&) = delete;
    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(begin_), size_}; }

  private:
    void* begin_;
    std::size_t size_;
};

// The same piece of memory at every multiple of its size.
class Repeated {
  public:
    explicit Repeated(std::size_t bytes) : all_((bytes + kPieceBytes - 1) / kPieceBytes * kPieceBytes) {
        const int file = memfd_create("repeated", 0);
        ATOLL_CHECK(file >= 0 && ftruncate(file, kPieceBytes) == 0, "no memory file");
        for (std::size_t at = 0; at < all_.bytes().size(); at += kPieceBytes) {
            void* place = all_.bytes().data() + at;
            ATOLL_CHECK(
                mmap(place, kPieceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == place,
                "piece at {}", at);
        }
        close(file);
    }
    std::span<std::byte> first(std::size_t bytes) const { return all_.bytes().first(bytes); }

  private:
    Holes all_;
};

// The last `count` values of a body that is zeros but for what `codec` makes of the last values.
TEST(HugeBody, every_codec_finds_the_values_beyond_2_to_the_31) {
    for (const Codec* codec : all_codecs()) {
        SCOPED_TRACE(codec->name());
        const std::int64_t huge = codec->body_bytes(kElements);
        const std::int64_t rest = kElements % 4096;  // a broken block of every format
        const auto values = test::normal_values<float>(rest, 1);
        std::vector<std::byte> small(static_cast<std::size_t>(codec->body_bytes(rest)));
        ASSERT_TRUE(codec->encode(values, small));
        std::vector<float> expected(values.size());
        codec->decode({small, rest}, 0, expected);

        const Holes body(static_cast<std::size_t>(huge));
        // A body is up to two parts, each in the order of the values; the first has what is shared or scales.
        const auto first_part = [&](std::int64_t elements) -> std::int64_t {
            switch (codec->id()) {
                case CodecId::int8:
                    return 2 * ((elements + 511) / 512);
                case CodecId::int4:
                    return 2 * ((elements + 63) / 64);
                case CodecId::e3m0:
                case CodecId::sign:
                    return 2 * ((elements + 255) / 256);
                default:
                    return 0;
            }
        };
        const auto split = static_cast<std::size_t>(first_part(rest));
        const auto huge_split = static_cast<std::size_t>(first_part(kElements));
        std::ranges::copy(std::span(small).first(split), body.bytes().begin() + (huge_split - split));
        std::ranges::copy(std::span(small).subspan(split), body.bytes().end() - (small.size() - split));

        std::vector<float> decoded(values.size() + 50, -1);
        const auto begin = static_cast<std::size_t>(kElements) - decoded.size();
        codec->decode({body.bytes(), kElements}, begin, decoded);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), decoded.begin() + 50));
        std::vector<float> sum(decoded.size(), 0);
        codec->decode_add({body.bytes(), kElements}, begin, 1, sum);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sum.begin() + 50));
    }
}

TEST(HugeBody, int4_encodes_more_than_2_to_the_31_values) {
    const Repeated input(static_cast<std::size_t>(kElements) * sizeof(float));
    const std::span values(reinterpret_cast<float*>(input.first(0).data()),
                           static_cast<std::size_t>(kElements));
    const auto last = test::normal_values<float>(36, 2);  // the last block is broken
    ASSERT_EQ(kElements % 64, 36);
    std::ranges::copy(last, values.end() - 36);

    const Codec& codec = codec_from_name("int4");
    const auto bytes = static_cast<std::size_t>(codec.body_bytes(kElements));
    const Repeated output(bytes);
    ASSERT_TRUE(codec.encode(values, output.first(bytes)));
    std::vector<std::byte> expected(static_cast<std::size_t>(codec.body_bytes(36)));
    ASSERT_TRUE(codec.encode(last, expected));
    EXPECT_TRUE(std::ranges::equal(output.first(bytes).last(18), std::span(expected).last(18)));
}

}  // namespace
}  // namespace atl
