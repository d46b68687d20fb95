// 16-bit conversions by integer arithmetic, the same for every instruction set; the compiler vectorises the loops.
// Source of the fp16 method: F. Giesen, "Float->half variants" (rounding by a float addition for subnormals).
#include "kernels/dispatch.h"
#include "kernels/half_precision_steps.h"
#include "kernels/simd.h"

namespace atl::kernels {
namespace ATOLL_INSTRUCTION_SET {
namespace {

inline std::uint16_t to_fp16(float value) {
    const auto all = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t sign = all & 0x80000000U;
    const std::uint32_t bits = all ^ sign;
    // Subnormal results: adding 0.5 moves the rounding position to fp16's last place.
    const float small = __builtin_bit_cast(float, bits) + 0.5F;
    const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, small) - 0x3f000000U;
    // Normal results: change the bias from 127 to 15 and round the 13 dropped bits to nearest even.
    const std::uint32_t normal = (bits + 0xc8000fffU + ((bits >> 13) & 1U)) >> 13;
    const std::uint32_t special = bits > 0x7f800000U ? 0x7e00U : 0x7c00U;
    std::uint32_t result = bits < 0x38800000U ? subnormal : normal;  // below 2^-14
    result = bits >= 0x47800000U ? special : result;  // from 2^16; what rounds up to it is inf by itself
    return static_cast<std::uint16_t>(result | (sign >> 16));
}

inline float from_fp16(std::uint16_t code) {
    const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000U) << 16;
    const std::uint32_t bits = static_cast<std::uint32_t>(code & 0x7fffU) << 13;
    const std::uint32_t exponent = bits & 0x0f800000U;
    const std::uint32_t normal = bits + 0x38000000U;
    const std::uint32_t special = bits + 0x70000000U;
    // Subnormals: as if the exponent were that of 2^-14, less the leading one this adds.
    const float renormalised =
        __builtin_bit_cast(float, bits + 0x38800000U) - __builtin_bit_cast(float, 0x38800000U);
    std::uint32_t result = exponent == 0 ? __builtin_bit_cast(std::uint32_t, renormalised) : normal;
    result = exponent == 0x0f800000U ? special : result;
    return __builtin_bit_cast(float, result | sign);
}

inline std::uint16_t to_bf16(float value) {
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

inline float from_bf16(std::uint16_t code) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(code) << 16);
}

template <HalfFormat Format>
void run(const HalfEncode<Format>& op) {
    const float* __restrict values = op.values;
    std::uint16_t* __restrict codes = op.codes;
    for (std::int64_t i = 0; i < op.count; ++i) {
        codes[i] = Format == HalfFormat::fp16 ? to_fp16(values[i]) : to_bf16(values[i]);
    }
}

template <HalfFormat Format>
void run(const HalfDecode<Format>& op) {
    const std::uint16_t* __restrict codes = op.codes;
    float* __restrict values = op.values;
    for (std::int64_t i = 0; i < op.count; ++i) {
        values[i] = Format == HalfFormat::fp16 ? from_fp16(codes[i]) : from_bf16(codes[i]);
    }
}

}  // namespace
}  // namespace ATOLL_INSTRUCTION_SET

using ATOLL_INSTRUCTION_SET::kInstructionSet;

template <>
void run_variant<kInstructionSet>(const HalfEncode<HalfFormat::fp16>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const HalfEncode<HalfFormat::bf16>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const HalfDecode<HalfFormat::fp16>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}
template <>
void run_variant<kInstructionSet>(const HalfDecode<HalfFormat::bf16>& op) {
    ATOLL_INSTRUCTION_SET::run(op);
}

}  // namespace atl::kernels
