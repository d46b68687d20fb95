// Codec: a chunk of fp32 to bytes and back. Small packets let a slow link carry a pseudo-gradient; every
// codec gives the same bits on every processor, so all sites decode one packet to one value.
//
// Shapes: values [elements] fp32, body [body_bytes(elements)] bytes, little-endian (FORMAT.md), any alignment.
// Ownership: nothing is kept. Threads: every call from any thread; a codec has no state.
// Errors: values that can't be encoded are refused by the return value; wrong spans are ATOLL_CHECK failures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace atl {

// The numbers stand in packets: never renumber.
enum class CodecId : std::uint8_t { identity = 1, fp16 = 2, bf16 = 3, int8 = 4 };

class Codec {
  public:
    virtual ~Codec() = default;

    virtual CodecId id() const = 0;
    virtual std::string_view name() const = 0;
    virtual std::int64_t body_bytes(std::int64_t elements) const = 0;  // exact, before zstd

    // False if a value is not finite or too large for the format; the body is then meaningless.
    [[nodiscard]] virtual bool encode(std::span<const float> values, std::span<std::byte> body) const = 0;
    // Whether every value it decodes to is finite. encode makes no other bodies; strangers may.
    [[nodiscard]] virtual bool is_finite(std::span<const std::byte> body, std::int64_t elements) const = 0;
    // values[i] = x[first + i]: any part of a body, so that several can be summed while they are in the cache.
    virtual void decode(std::span<const std::byte> body, std::size_t first,
                        std::span<float> values) const = 0;
    // sum[i] = sum[i] + weight · x[first + i], product and sum each rounded to fp32.
    virtual void decode_add(std::span<const std::byte> body, std::size_t first, float weight,
                            std::span<float> sum) const = 0;
};

// Codecs live as long as the program.
const Codec& codec(CodecId id);
const Codec& codec_from_name(std::string_view name);  // throws UserError naming those that exist
const std::vector<const Codec*>& all_codecs();
bool is_codec(std::uint8_t id);

}  // namespace atl
