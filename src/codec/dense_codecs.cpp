#include "codec/dense_codecs.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/check.h"
#include "kernels/half_precision.h"
#include "kernels/outer_step.h"

namespace atl {

namespace {

// Bodies come with any alignment; work goes in blocks that stay in the first-level cache.
constexpr std::size_t kBlockElements = 2048;

template <class T>
bool is_aligned(const std::byte* bytes) {
    return reinterpret_cast<std::uintptr_t>(bytes) % alignof(T) == 0;
}

// The codes of `elements` elements from `first` on.
template <class Code>
std::span<const std::byte> part_of(std::span<const std::byte> codes, std::size_t first,
                                   std::size_t elements) {
    ATOLL_CHECK_LE((first + elements) * sizeof(Code), codes.size());
    return codes.subspan(first * sizeof(Code), elements * sizeof(Code));
}

// Calls work(codes, first element) for each block of the body's codes, copied only if they are not aligned.
template <class Code, class Work>
void for_each_block(std::span<const std::byte> body, const Work& work) {
    std::array<Code, kBlockElements> copy;
    const std::size_t elements = body.size() / sizeof(Code);
    for (std::size_t begin = 0; begin < elements; begin += kBlockElements) {
        const std::size_t count = std::min(kBlockElements, elements - begin);
        const std::byte* bytes = body.data() + begin * sizeof(Code);
        if (is_aligned<Code>(bytes)) {
            work(std::span<const Code>(reinterpret_cast<const Code*>(bytes), count), begin);
        } else {
            std::memcpy(copy.data(), bytes, count * sizeof(Code));
            work(std::span<const Code>(copy.data(), count), begin);
        }
    }
}

class IdentityCodec final : public Codec {
  public:
    using Codec::Codec;

    CodecId id() const override { return CodecId::identity; }
    std::string_view name() const override { return "identity"; }
    std::int64_t body_bytes(std::int64_t elements) const override { return 4 * elements; }
    double most_norm_gain() const override { return 1; }

    bool encode(std::span<const float> values, std::span<std::byte> body) const override {
        ATOLL_CHECK_EQ(values.size_bytes(), body.size());
        if (!body.empty()) std::memcpy(body.data(), values.data(), body.size());
        return kernels::all_finite(values, instruction_set());
    }
    bool is_finite(const Body& body) const override {
        ATOLL_CHECK_EQ(body_bytes(body.elements), static_cast<std::int64_t>(body.bytes.size()));
        bool finite = true;
        for_each_block<float>(body.bytes, [&](std::span<const float> block, std::size_t) {
            finite = finite && kernels::all_finite(block, instruction_set());
        });
        return finite;
    }
    std::span<const float> plain_values(const Body& body) const override {
        if (!is_aligned<float>(body.bytes.data())) return {};
        return {reinterpret_cast<const float*>(body.bytes.data()), body.bytes.size() / sizeof(float)};
    }
    void decode(const Body& body, std::size_t first, std::span<float> values) const override {
        const auto part = part_of<float>(body.bytes, first, values.size());
        if (!part.empty()) std::memcpy(values.data(), part.data(), part.size());
    }
    void decode_add(const Body& body, std::size_t first, float weight, std::span<float> sum) const override {
        for_each_block<float>(part_of<float>(body.bytes, first, sum.size()), [&](std::span<const float> block,
                                                                                 std::size_t begin) {
            kernels::add_weighted(block, weight, sum.subspan(begin, block.size()), instruction_set());
        });
    }
};

struct HalfFormat {
    CodecId id;
    std::string_view name;
    double most_norm_gain;
    std::uint16_t exponent_mask;  // all ones in it: infinite or not a number
    void (*encode)(std::span<const float>, std::span<std::uint16_t>, kernels::InstructionSet);
    void (*decode)(std::span<const std::uint16_t>, std::span<float>, kernels::InstructionSet);
};

class HalfCodec final : public Codec {
  public:
    HalfCodec(const HalfFormat& format, kernels::InstructionSet set) : Codec(set), format_(format) {}

    CodecId id() const override { return format_.id; }
    std::string_view name() const override { return format_.name; }
    std::int64_t body_bytes(std::int64_t elements) const override { return 2 * elements; }
    double most_norm_gain() const override { return format_.most_norm_gain; }

    bool encode(std::span<const float> values, std::span<std::byte> body) const override {
        ATOLL_CHECK_EQ(values.size() * 2, body.size());
        std::array<std::uint16_t, kBlockElements> codes;
        bool finite = true;
        for (std::size_t begin = 0; begin < values.size(); begin += kBlockElements) {
            const auto block = values.subspan(begin, std::min(kBlockElements, values.size() - begin));
            const std::span<std::uint16_t> encoded(codes.data(), block.size());
            format_.encode(block, encoded, instruction_set());
            finite = finite && are_finite(encoded);
            std::memcpy(body.data() + 2 * begin, codes.data(), encoded.size_bytes());
        }
        return finite;
    }
    bool is_finite(const Body& body) const override {
        ATOLL_CHECK_EQ(body_bytes(body.elements), static_cast<std::int64_t>(body.bytes.size()));
        bool finite = true;
        for_each_block<std::uint16_t>(body.bytes, [&](std::span<const std::uint16_t> block, std::size_t) {
            finite = finite && are_finite(block);
        });
        return finite;
    }
    void decode(const Body& body, std::size_t first, std::span<float> values) const override {
        const auto part = part_of<std::uint16_t>(body.bytes, first, values.size());
        for_each_block<std::uint16_t>(part, [&](std::span<const std::uint16_t> block, std::size_t begin) {
            format_.decode(block, values.subspan(begin, block.size()), instruction_set());
        });
    }
    void decode_add(const Body& body, std::size_t first, float weight, std::span<float> sum) const override {
        const auto part = part_of<std::uint16_t>(body.bytes, first, sum.size());
        std::array<float, kBlockElements> values;
        for_each_block<std::uint16_t>(part, [&](std::span<const std::uint16_t> block, std::size_t begin) {
            const std::span<float> decoded(values.data(), block.size());
            format_.decode(block, decoded, instruction_set());
            kernels::add_weighted(decoded, weight, sum.subspan(begin, block.size()), instruction_set());
        });
    }

  private:
    bool are_finite(std::span<const std::uint16_t> codes) const {
        unsigned bad = 0;
        for (const std::uint16_t code : codes) {
            bad |= static_cast<unsigned>((code & format_.exponent_mask) == format_.exponent_mask);
        }
        return bad == 0;
    }

    HalfFormat format_;
};

// fp16 rounds what is a little above half its smallest value up to that.
constexpr HalfFormat kFp16{CodecId::fp16, "fp16", 2, 0x7C00, &kernels::fp16_encode, &kernels::fp16_decode};
constexpr HalfFormat kBf16{
    CodecId::bf16, "bf16", 1 + 1.0 / 256, 0x7F80, &kernels::bf16_encode, &kernels::bf16_decode};

}  // namespace

std::vector<std::unique_ptr<const Codec>> make_dense_codecs(kernels::InstructionSet set) {
    std::vector<std::unique_ptr<const Codec>> codecs;
    codecs.push_back(std::make_unique<IdentityCodec>(set));
    codecs.push_back(std::make_unique<HalfCodec>(kFp16, set));
    codecs.push_back(std::make_unique<HalfCodec>(kBf16, set));
    return codecs;
}

}  // namespace atl
