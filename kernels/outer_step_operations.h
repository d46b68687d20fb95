// What outer_step.cpp hands to outer_step_cpu.cpp.
#pragma once

#include <cstdint>

namespace atl::kernels {

struct Subtract {
    std::int64_t count = 0;
    const float* before = nullptr;
    const float* after = nullptr;
    float* delta = nullptr;
};

struct AddWeighted {
    std::int64_t count = 0;
    const float* values = nullptr;
    float weight = 0;
    float* accumulator = nullptr;
};

struct Scale {
    std::int64_t count = 0;
    float* values = nullptr;
    float factor = 0;
};

struct WeightedMean {
    std::int64_t count = 0;
    std::int64_t inputs = 0;
    const float* const* values = nullptr;
    const float* weights = nullptr;
    float divisor = 1;
    float factor = 0;  // 1 / divisor where that is exact, else 0
    float* mean = nullptr;
    bool stays_in_cache = true;
    bool* finite = nullptr;
};

struct Interpolate {
    std::int64_t count = 0;
    const float* source = nullptr;
    float fraction = 0;
    float* target = nullptr;
};

struct PlainSgd {
    std::int64_t count = 0;
    float learning_rate = 0;
    const float* delta = nullptr;
    float* theta = nullptr;
};

struct MomentumSgd {
    std::int64_t count = 0;
    float learning_rate = 0;
    float momentum = 0;
    bool nesterov = false;
    const float* delta = nullptr;
    float* theta = nullptr;
    float* velocity = nullptr;
};

struct AdamOuter {
    std::int64_t count = 0;
    float step_size = 0;
    float first_decay = 0;
    float second_decay = 0;
    float second_scale = 1;
    float epsilon = 0;
    const float* delta = nullptr;
    float* theta = nullptr;
    float* first = nullptr;
    float* second = nullptr;
};

struct AllFinite {
    std::int64_t count = 0;
    const float* values = nullptr;
    bool* finite = nullptr;
};

struct FixedSquareSum {
    std::int64_t count = 0;
    const float* values = nullptr;
    double* sum = nullptr;
};

}  // namespace atl::kernels
