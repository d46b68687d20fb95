// Codes with a scale per block, as plain loops that the compiler vectorises: whole blocks have constant trip counts.
#include "kernels/block_code_steps.h"
#include "kernels/dispatch.h"
#include "kernels/fixed_lanes.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

constexpr std::int32_t kMagnitude = 0x7fffffff;

inline std::int32_t bits_of(float value) {
    return __builtin_bit_cast(std::int32_t, value);
}
inline float from_bits(std::int32_t bits) {
    return __builtin_bit_cast(float, bits);
}

// The pattern of the largest magnitude; above that of infinity if one is not a number.
[[gnu::always_inline]] inline std::int32_t largest_magnitude(const float* values, std::int64_t count) {
    std::int32_t largest = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int32_t bits = bits_of(values[i]) & kMagnitude;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

// How a format turns values into codes. `Scale` is what encoding needs of a block's scale, `scale` the scale itself.
template <BlockFormat Format>
struct Code;
template <BlockFormat Format>
struct Constant {
    constexpr BlockFormat operator()() const { return Format; }
};

struct LargestMagnitudeScale {
    // bf16, upwards.
    static std::int32_t scale_code(const float*, std::int64_t, std::int32_t largest) {
        return static_cast<std::int32_t>((static_cast<std::uint32_t>(largest) + 0xffffU) >> 16);
    }
};

// Integers −Largest…Largest of kBits bits. Largest · fl(1/Largest) rounds to 1: the largest magnitude is exact.
template <int Bits, int Largest>
struct Integers : LargestMagnitudeScale {
    static constexpr int kBits = Bits;
    static constexpr std::int32_t kMask = (1 << Bits) - 1;
    static constexpr std::int32_t kSign = 1 << (Bits - 1);

    static float factor(float scale) { return scale > 0 ? Largest / scale : 0.0F; }
    static std::int32_t encode(float value, float factor) {
        // Adding 1.5 · 2^23 rounds to an integer, ties to even, in the lowest bits.
        return bits_of(value * factor + 12582912.0F) & kMask;
    }
    static float decode(std::int32_t code, float scale) {
        return static_cast<float>((code ^ kSign) - kSign) * (1.0F / Largest) * scale;
    }
};
template <>
struct Code<BlockFormat::int8> : Integers<8, 127> {};
template <>
struct Code<BlockFormat::int4> : Integers<4, 7> {};

template <>
struct Code<BlockFormat::e3m0> : LargestMagnitudeScale {
    static constexpr int kBits = 4;
    static constexpr std::int32_t kHalfOfLeast = 0x3c000000;  // 2^-7, below which 0 is nearer than 2^-6

    static float factor(float scale) { return scale > 0 ? 1.0F / scale : 0.0F; }
    static std::int32_t encode(float value, float factor) {
        const std::int32_t bits = bits_of(value * factor);
        const std::int32_t magnitude = bits & kMagnitude;
        // Half a binade on top carries into the exponent from 1.5 · 2^k on.
        const auto raised = static_cast<std::uint32_t>(magnitude) + 0x00400000U;
        const std::int32_t nearest = static_cast<std::int32_t>(raised >> 23) - 120;
        const std::int32_t exponent = nearest > 1 ? nearest : 1;
        const std::int32_t sign = (bits >> 28) & 8;
        return (magnitude >= kHalfOfLeast ? exponent : 0) | sign;
    }
    static float decode(std::int32_t code, float scale) {
        const std::int32_t exponent = code & 7;
        const std::int32_t magnitude = exponent == 0 ? 0 : (exponent + 120) << 23;
        return from_bits(magnitude | (code & 8) << 28) * scale;
    }
};

template <>
struct Code<BlockFormat::sign> {
    static constexpr int kBits = 1;

    static std::int32_t scale_code(const float* values, std::int64_t count, std::int32_t) {
        const double sum = fixed_sum(values, count, [](double value) { return value < 0 ? -value : value; });
        const std::int32_t mean = bits_of(static_cast<float>(sum / static_cast<double>(count)));
        return (mean + 0x7fff + ((mean >> 16) & 1)) >> 16;
    }
    static float factor(float) { return 1.0F; }
    static std::int32_t encode(float value, float) { return (bits_of(value) >> 31) & 1; }
    static float decode(std::int32_t code, float scale) { return from_bits(bits_of(scale) | code << 31); }
};

template <BlockFormat Format>
inline constexpr std::int64_t kBlock = block_elements(Format);
template <BlockFormat Format>
inline constexpr std::int64_t kPlanes = values_per_byte(Format);

// Codes of `stride` bytes; values beyond the block's end must be there and 0.
template <BlockFormat Format>
[[gnu::always_inline]] inline void encode_codes(const float* __restrict values, std::int64_t stride,
                                                float factor, std::uint8_t* __restrict codes) {
    for (std::int64_t j = 0; j < stride; ++j) {
        std::int32_t packed = 0;
#pragma GCC unroll 8
        for (std::int64_t plane = 0; plane < kPlanes<Format>; ++plane) {
            packed |= Code<Format>::encode(values[plane * stride + j], factor)
                      << (plane * Code<Format>::kBits);
        }
        codes[j] = static_cast<std::uint8_t>(packed);
    }
}

// store(index, value) for each of planes · stride values.
template <BlockFormat Format, class Store>
[[gnu::always_inline]] inline void decode_codes(const std::uint8_t* __restrict codes, std::int64_t stride,
                                                float scale, Store store) {
    constexpr std::int32_t kMask = (1 << Code<Format>::kBits) - 1;
#pragma GCC unroll 8
    for (std::int64_t plane = 0; plane < kPlanes<Format>; ++plane) {
        for (std::int64_t j = 0; j < stride; ++j) {
            const std::int32_t code = (codes[j] >> (plane * Code<Format>::kBits)) & kMask;
            store(plane * stride + j, Code<Format>::decode(code, scale));
        }
    }
}

template <BlockFormat Format>
[[gnu::always_inline]] inline bool encode_block(const float* values, std::int64_t count, std::int64_t stride,
                                                std::uint8_t* scale_bytes, std::uint8_t* codes) {
    const std::int32_t largest = largest_magnitude(values, count);
    std::int32_t scale_code = Code<Format>::scale_code(values, count, largest);
    if (scale_code < kLeastScale) scale_code = 0;
    scale_bytes[0] = static_cast<std::uint8_t>(scale_code);
    scale_bytes[1] = static_cast<std::uint8_t>(scale_code >> 8);
    encode_codes<Format>(values, stride, Code<Format>::factor(from_bits(scale_code << 16)), codes);
    return largest < 0x7f800000 && scale_code < kForbiddenScale;
}

template <BlockFormat Format>
void encode(const BlockEncode& op) {
    constexpr std::int64_t kStride = kBlock<Format> / kPlanes<Format>;
    const std::int64_t whole = op.count / kBlock<Format>;
    const float* values = op.values;
    std::uint8_t* scales = op.scales;
    std::uint8_t* codes = op.codes;
    bool encodable = true;
    for (std::int64_t block = 0; block < whole; ++block) {
        encodable &= encode_block<Format>(values, kBlock<Format>, kStride, scales, codes);
        values += kBlock<Format>;
        scales += 2;
        codes += kStride;
    }
    const std::int64_t rest = op.count - whole * kBlock<Format>;
    if (rest > 0) {
        float padded[kBlock<Format>] = {};
        for (std::int64_t i = 0; i < rest; ++i) padded[i] = values[i];
        const std::int64_t stride = code_bytes(Format, rest);
        encodable &= encode_block<Format>(padded, rest, stride, scales, codes);
    }
    *op.encodable = encodable;
}

inline float read_scale(const std::uint8_t* bytes) {
    return from_bits(static_cast<std::int32_t>(static_cast<std::uint32_t>(bytes[0]) << 16 |
                                               static_cast<std::uint32_t>(bytes[1]) << 24));
}

// A block of which a part is wanted, or that is not whole.
template <BlockFormat Format>
void decode_part(const BlockDecode& op, std::int64_t block, std::int64_t begin, std::int64_t end) {
    const std::int64_t start = block * kBlock<Format>;
    const std::int64_t rest = op.elements - start;
    const std::int64_t stride = code_bytes(Format, rest < kBlock<Format> ? rest : kBlock<Format>);
    float decoded[kBlock<Format>];
    decode_codes<Format>(op.codes + code_bytes(Format, start), stride, read_scale(op.scales + 2 * block),
                         [&](std::int64_t i, float value) { decoded[i] = value; });
    for (std::int64_t i = begin; i < end; ++i) {
        float& to = op.values[i - op.first];
        const float value = decoded[i - start];
        to = op.add ? to + op.weight * value : value;
    }
}

template <BlockFormat Format>
void decode(const BlockDecode& op) {
    constexpr std::int64_t kStride = kBlock<Format> / kPlanes<Format>;
    const std::int64_t last = op.first + op.count;
    const float weight = op.weight;
    for (std::int64_t begin = op.first; begin < last;) {
        const std::int64_t block = begin / kBlock<Format>;
        const std::int64_t start = block * kBlock<Format>;
        const std::int64_t end = start + kBlock<Format> < last ? start + kBlock<Format> : last;
        if (end - begin < kBlock<Format>) {
            decode_part<Format>(op, block, begin, end);
        } else {
            float* __restrict to = op.values + (begin - op.first);
            const float scale = read_scale(op.scales + 2 * block);
            const std::uint8_t* codes = op.codes + block * kStride;
            if (op.add) {
                decode_codes<Format>(codes, kStride, scale,
                                     [=](std::int64_t i, float value) { to[i] += weight * value; });
            } else {
                decode_codes<Format>(codes, kStride, scale,
                                     [=](std::int64_t i, float value) { to[i] = value; });
            }
        }
        begin = end;
    }
}

// Calls work with the format, known only now, as a constant.
template <class Work>
void for_format(BlockFormat format, Work work) {
    switch (format) {
        case BlockFormat::int8:
            return work(Constant<BlockFormat::int8>());
        case BlockFormat::int4:
            return work(Constant<BlockFormat::int4>());
        case BlockFormat::e3m0:
            return work(Constant<BlockFormat::e3m0>());
        case BlockFormat::sign:
            return work(Constant<BlockFormat::sign>());
    }
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const BlockEncode& op) {
    ATOLL_INSTRUCTION_SET::for_format(op.format,
                                      [&](auto format) { ATOLL_INSTRUCTION_SET::encode<format()>(op); });
}
template <>
void run_variant<kInstructionSet>(const BlockDecode& op) {
    ATOLL_INSTRUCTION_SET::for_format(op.format,
                                      [&](auto format) { ATOLL_INSTRUCTION_SET::decode<format()>(op); });
}

}  // namespace atl::kernels
