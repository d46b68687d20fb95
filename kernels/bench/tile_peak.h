// The speed of attention's register tile alone, with everything in the first-level cache: what attention could
// reach without softmax, packing and masks.
#pragma once

#include <cstdint>

namespace atl::kernels {

struct TilePeak {
    std::int64_t repetitions = 0;
    float* memory = nullptr;       // kTilePeakElements, any finite content
    double* operations = nullptr;  // floating-point operations done
};

inline constexpr std::int64_t kTilePeakElements = 16384;

}  // namespace atl::kernels
