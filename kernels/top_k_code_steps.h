// What top_k_code.cpp hands to top_k_code_cpu.cpp.
#pragma once

#include <cstdint>

namespace atl::kernels {

// The indices of the `kept` largest magnitudes of one tile, ascending.
struct TopKSelect {
    const float* values = nullptr;
    std::int64_t count = 0;
    std::int64_t kept = 0;
    std::int32_t* indices = nullptr;  // [count]: more than `kept` are written on the way
    bool* finite = nullptr;           // whether all values are; else the indices are meaningless
};

}  // namespace atl::kernels
