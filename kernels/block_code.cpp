#include "kernels/block_code.h"

#include <cstddef>

#include "core/check.h"
#include "kernels/block_code_steps.h"
#include "kernels/dispatch.h"

namespace atl::kernels {
namespace {

void check_sizes(BlockFormat format, std::int64_t elements, std::size_t scale_bytes, std::size_t bytes) {
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(scale_bytes), 2 * block_count(format, elements));
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(bytes), code_bytes(format, elements));
}

void decode(const BlockCodes& from, bool add, float weight, std::span<float> values, InstructionSet set) {
    check_sizes(from.format, from.elements, from.scales.size(), from.codes.size());
    const auto count = static_cast<std::int64_t>(values.size());
    ATOLL_CHECK(from.first >= 0 && count <= from.elements - from.first, "values {} to {} of {}", from.first,
                from.first + count, from.elements);
    dispatch(BlockDecode{from.format, from.scales.data(), from.codes.data(), from.elements, from.first, count,
                         weight, add, values.data()},
             set);
}

}  // namespace

bool block_encode(BlockFormat format, std::span<const float> values, std::span<std::uint8_t> scales,
                  std::span<std::uint8_t> codes, InstructionSet set) {
    const auto count = static_cast<std::int64_t>(values.size());
    check_sizes(format, count, scales.size(), codes.size());
    bool encodable = true;
    dispatch(BlockEncode{format, values.data(), count, scales.data(), codes.data(), &encodable}, set);
    return encodable;
}

void block_decode(const BlockCodes& from, std::span<float> values, InstructionSet set) {
    decode(from, false, 1, values, set);
}

void block_decode_add(const BlockCodes& from, float weight, std::span<float> accumulator,
                      InstructionSet set) {
    decode(from, true, weight, accumulator, set);
}

bool block_scales_allowed(std::span<const std::uint8_t> scales) {
    unsigned bad = 0;
    for (std::size_t i = 1; i < scales.size(); i += 2) {  // the upper byte decides, a sign bit too
        bad |= static_cast<unsigned>(scales[i] >= kForbiddenScale >> 8);
    }
    return bad == 0;
}

}  // namespace atl::kernels
