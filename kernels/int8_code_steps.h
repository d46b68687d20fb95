// What int8_code.cpp hands to int8_code_cpu.cpp.
#pragma once

#include <cstdint>

namespace atl::kernels {

// Σ (x − pivot) and Σ (x − pivot)² in f64.
struct CentredSums {
    const float* values = nullptr;
    std::int64_t count = 0;
    double pivot = 0;
    double* sum = nullptr;
    double* square_sum = nullptr;
};

struct Int8Encode {
    const float* values = nullptr;
    std::int64_t count = 0;
    float mean = 0;
    float step = 0;
    float inverse_step = 0;  // 0: every value gets the middle code
    std::uint8_t* codes = nullptr;
    float* codebook = nullptr;  // 256 bin means
};

struct Int8Lookup {
    const std::uint8_t* codes = nullptr;
    std::int64_t count = 0;
    const float* table = nullptr;
    float* values = nullptr;
};

struct Int8LookupAdd {
    const std::uint8_t* codes = nullptr;
    std::int64_t count = 0;
    const float* table = nullptr;
    float* accumulator = nullptr;
};

}  // namespace atl::kernels
