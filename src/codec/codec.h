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

#include "kernels/instruction_set.h"

namespace atl {

// The numbers stand in packets: never renumber. FORMAT.md tells what 4 was.
enum class CodecId : std::uint8_t {
    identity = 1,
    fp16 = 2,
    bf16 = 3,
    int4 = 5,
    e3m0 = 6,
    sign = 7,
    top_k = 8,
    int8 = 9,
};

// What a codec made of a chunk.
struct Body {
    std::span<const std::byte> bytes;  // body_bytes(elements)
    std::int64_t elements = 0;
};

class Codec {
  public:
    explicit Codec(kernels::InstructionSet set) : set_(set) {}
    virtual ~Codec() = default;
    Codec(const Codec&) = delete;
    Codec& operator=(const Codec&) = delete;

    virtual CodecId id() const = 0;
    virtual std::string_view name() const = 0;                         // what codec_from_name takes
    virtual std::int64_t body_bytes(std::int64_t elements) const = 0;  // exact, before zstd

    // False if a value is not finite or too large for the format; the body is then meaningless.
    [[nodiscard]] virtual bool encode(std::span<const float> values, std::span<std::byte> body) const = 0;
    // Whether every value it decodes to is finite. encode makes no other bodies; strangers may.
    [[nodiscard]] virtual bool is_finite(const Body& body) const = 0;
    // The L2 norm of what a body decodes to is at most so many times that of what was encoded, but for values near the
    // smallest there are (FORMAT.md, "What is lost").
    virtual double most_norm_gain() const = 0;
    // The values of a body that is nothing but them, at their natural alignment; empty: they must be decoded.
    virtual std::span<const float> plain_values(const Body&) const { return {}; }
    // values[i] = x[first + i]: any part of a body, so that several can be summed while they are in the cache.
    virtual void decode(const Body& body, std::size_t first, std::span<float> values) const = 0;
    // sum[i] = sum[i] + weight · x[first + i], product and sum each rounded to fp32.
    virtual void decode_add(const Body& body, std::size_t first, float weight,
                            std::span<float> sum) const = 0;

    kernels::InstructionSet instruction_set() const { return set_; }

  private:
    kernels::InstructionSet set_;
};

// Codecs live as long as the program. The instruction set changes their speed, never a bit.
const std::vector<const Codec*>& all_codecs(kernels::InstructionSet set = kernels::best_instruction_set());
// One of all_codecs ("top_k" is "top_k_64"), or "top_k_N" for any N from 1 to 4096; throws UserError naming those that
// exist.
const Codec& codec_from_name(std::string_view name,
                             kernels::InstructionSet set = kernels::best_instruction_set());

// Carries the mean of what `contribution` carried: itself, or int8 if it has fewer than eight bits an element.
const Codec& mean_codec(const Codec& contribution);
// Its packets are so small that everybody gets everybody's: there is no second leg.
bool is_gathered(const Codec& codec);
// It loses so much that what is lost must be added to the next round (error_feedback.h).
bool needs_error_feedback(const Codec& codec);

}  // namespace atl
