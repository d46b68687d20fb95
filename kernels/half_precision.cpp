#include "kernels/half_precision.h"

#include "core/check.h"
#include "kernels/dispatch.h"
#include "kernels/half_precision_steps.h"

namespace atl::kernels {
namespace {

template <HalfFormat Format>
void encode(std::span<const float> values, std::span<std::uint16_t> codes, InstructionSet set) {
    ATOLL_CHECK_EQ(values.size(), codes.size());
    dispatch(HalfEncode<Format>{values.data(), static_cast<std::int64_t>(values.size()), codes.data()}, set);
}

template <HalfFormat Format>
void decode(std::span<const std::uint16_t> codes, std::span<float> values, InstructionSet set) {
    ATOLL_CHECK_EQ(codes.size(), values.size());
    dispatch(HalfDecode<Format>{codes.data(), static_cast<std::int64_t>(codes.size()), values.data()}, set);
}

}  // namespace

void fp16_encode(std::span<const float> values, std::span<std::uint16_t> codes, InstructionSet set) {
    encode<HalfFormat::fp16>(values, codes, set);
}
void fp16_decode(std::span<const std::uint16_t> codes, std::span<float> values, InstructionSet set) {
    decode<HalfFormat::fp16>(codes, values, set);
}
void bf16_encode(std::span<const float> values, std::span<std::uint16_t> codes, InstructionSet set) {
    encode<HalfFormat::bf16>(values, codes, set);
}
void bf16_decode(std::span<const std::uint16_t> codes, std::span<float> values, InstructionSet set) {
    decode<HalfFormat::bf16>(codes, values, set);
}

}  // namespace atl::kernels
