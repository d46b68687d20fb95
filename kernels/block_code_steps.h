// What block_code.cpp hands to block_code_cpu.cpp.
#pragma once

#include "kernels/block_code.h"

namespace atl::kernels {

struct BlockEncode {
    BlockFormat format;
    const float* values = nullptr;
    std::int64_t count = 0;
    std::uint8_t* scales = nullptr;
    std::uint8_t* codes = nullptr;
    bool* encodable = nullptr;
};

struct BlockDecode {
    BlockFormat format;
    const std::uint8_t* scales = nullptr;
    const std::uint8_t* codes = nullptr;
    std::int64_t elements = 0;  // in all
    std::int64_t first = 0;     // of the wanted
    std::int64_t count = 0;
    float weight = 1;
    bool add = false;  // weight · x to what is there
    float* values = nullptr;
};

}  // namespace atl::kernels
