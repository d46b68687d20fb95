#include "codec/block_codecs.h"

#include "core/check.h"
#include "kernels/block_code.h"

namespace atl {

namespace {

using kernels::BlockFormat;

template <class Byte>
auto as_numbers(std::span<Byte> bytes) {
    using Number = std::conditional_t<std::is_const_v<Byte>, const std::uint8_t, std::uint8_t>;
    return std::span(reinterpret_cast<Number*>(bytes.data()), bytes.size());
}

// A body is the scales of all blocks, then the codes of all blocks.
class BlockCodec final : public Codec {
  public:
    BlockCodec(CodecId id, std::string_view name, BlockFormat format, double most_norm_gain,
               kernels::InstructionSet set)
        : Codec(set), id_(id), name_(name), format_(format), most_norm_gain_(most_norm_gain) {}

    CodecId id() const override { return id_; }
    std::string_view name() const override { return name_; }
    double most_norm_gain() const override { return most_norm_gain_; }
    std::int64_t body_bytes(std::int64_t elements) const override {
        return scale_bytes(elements) + kernels::code_bytes(format_, elements);
    }

    bool encode(std::span<const float> values, std::span<std::byte> body) const override {
        const auto elements = static_cast<std::int64_t>(values.size());
        ATOLL_CHECK_EQ(body_bytes(elements), static_cast<std::int64_t>(body.size()));
        const auto scales = static_cast<std::size_t>(scale_bytes(elements));
        return kernels::block_encode(format_, values, as_numbers(body.first(scales)),
                                     as_numbers(body.subspan(scales)), instruction_set());
    }
    bool is_finite(const Body& body) const override {
        return kernels::block_scales_allowed(codes_of(body, 0).scales);
    }
    void decode(const Body& body, std::size_t first, std::span<float> values) const override {
        kernels::block_decode(codes_of(body, first), values, instruction_set());
    }
    void decode_add(const Body& body, std::size_t first, float weight, std::span<float> sum) const override {
        kernels::block_decode_add(codes_of(body, first), weight, sum, instruction_set());
    }

  private:
    std::int64_t scale_bytes(std::int64_t elements) const {
        return 2 * kernels::block_count(format_, elements);
    }

    kernels::BlockCodes codes_of(const Body& body, std::size_t first) const {
        ATOLL_CHECK_EQ(body_bytes(body.elements), static_cast<std::int64_t>(body.bytes.size()));
        const auto scales = static_cast<std::size_t>(scale_bytes(body.elements));
        return {.format = format_,
                .elements = body.elements,
                .scales = as_numbers(body.bytes.first(scales)),
                .codes = as_numbers(body.bytes.subspan(scales)),
                .first = static_cast<std::int64_t>(first)};
    }

    CodecId id_;
    std::string_view name_;
    BlockFormat format_;
    double most_norm_gain_;
};

}  // namespace

std::vector<std::unique_ptr<const Codec>> make_block_codecs(kernels::InstructionSet set) {
    std::vector<std::unique_ptr<const Codec>> codecs;
    // The norm gains most where all but one value of a block are small: the bound of each value's error times the root of
    // their number.
    codecs.push_back(std::make_unique<BlockCodec>(CodecId::int8, "int8", BlockFormat::int8, 1.1, set));
    codecs.push_back(std::make_unique<BlockCodec>(CodecId::int4, "int4", BlockFormat::int4, 1.6, set));
    codecs.push_back(std::make_unique<BlockCodec>(CodecId::e3m0, "e3m0", BlockFormat::e3m0, 1.5, set));
    // The mean magnitude is no more than the root of the mean square, but for the scale's rounding.
    codecs.push_back(
        std::make_unique<BlockCodec>(CodecId::sign, "sign", BlockFormat::sign, 1 + 1.0 / 128, set));
    return codecs;
}

}  // namespace atl
