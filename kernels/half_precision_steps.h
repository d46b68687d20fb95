// What half_precision.cpp hands to half_precision_cpu.cpp.
#pragma once

#include <cstdint>

namespace atl::kernels {

enum class HalfFormat : std::uint8_t { fp16, bf16 };

template <HalfFormat Format>
struct HalfEncode {
    const float* values = nullptr;
    std::int64_t count = 0;
    std::uint16_t* codes = nullptr;
};

template <HalfFormat Format>
struct HalfDecode {
    const std::uint16_t* codes = nullptr;
    std::int64_t count = 0;
    float* values = nullptr;
};

}  // namespace atl::kernels
