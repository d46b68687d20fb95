#include "kernels/int8_code.h"

#include <array>
#include <cmath>

#include "core/check.h"
#include "kernels/dispatch.h"
#include "kernels/int8_code_steps.h"

namespace atl::kernels {
namespace {

constexpr float kSigmasPerStep = 12.0F / kInt8Bins;

std::int64_t size_of(std::span<const float> values) {
    return static_cast<std::int64_t>(values.size());
}

}  // namespace

bool Moments::is_finite() const {
    return std::isfinite(mean) && std::isfinite(sigma);
}

Moments moments(std::span<const float> values, InstructionSet set) {
    if (values.empty()) return {};
    // Sums about a value of the data: no cancellation when the mean is far larger than sigma.
    const double pivot = values.front();
    double sum = 0;
    double square_sum = 0;
    dispatch(CentredSums{values.data(), size_of(values), pivot, &sum, &square_sum}, set);
    const double count = static_cast<double>(values.size());
    const double shift = sum / count;
    const double variance = values.size() < 2 ? 0.0 : (square_sum - sum * shift) / (count - 1);
    // A NaN variance must stay one: only a negative one, by rounding, becomes zero.
    return {static_cast<float>(pivot + shift), static_cast<float>(std::sqrt(variance < 0 ? 0.0 : variance))};
}

void int8_encode(std::span<const float> values, Moments moments, std::span<std::uint8_t> codes,
                 std::span<float, kInt8Bins> codebook, InstructionSet set) {
    ATOLL_CHECK_EQ(values.size(), codes.size());
    ATOLL_CHECK(moments.is_finite(), "mean {}, sigma {}", moments.mean, moments.sigma);
    const float step = moments.sigma * kSigmasPerStep;
    const float inverse_step = step > 0 && std::isfinite(1 / step) ? 1 / step : 0.0F;
    dispatch(Int8Encode{values.data(), size_of(values), moments.mean, step, inverse_step, codes.data(),
                        codebook.data()},
             set);
}

void int8_decode(std::span<const std::uint8_t> codes, std::span<const float, kInt8Bins> codebook,
                 std::span<float> values, InstructionSet set) {
    ATOLL_CHECK_EQ(codes.size(), values.size());
    dispatch(Int8Lookup{codes.data(), size_of(values), codebook.data(), values.data()}, set);
}

void int8_decode_add(std::span<const std::uint8_t> codes, std::span<const float, kInt8Bins> codebook,
                     float weight, std::span<float> accumulator, InstructionSet set) {
    ATOLL_CHECK_EQ(codes.size(), accumulator.size());
    std::array<float, kInt8Bins> weighted;  // each product rounded here, once for all its uses
    for (std::size_t bin = 0; bin < kInt8Bins; ++bin) weighted[bin] = weight * codebook[bin];
    dispatch(Int8LookupAdd{codes.data(), size_of(accumulator), weighted.data(), accumulator.data()}, set);
}

}  // namespace atl::kernels
