// What cross_entropy.cpp hands to cross_entropy_cpu.cpp: both forms in one.
#pragma once

#include <cstdint>

namespace atl::kernels {

template <class T>
struct CrossEntropyRows {
    std::int64_t rows = 0;
    std::int64_t vocab = 0;
    const T* logits = nullptr;
    T* dlogits = nullptr;  // null: the loss alone; otherwise the logits' own memory
    const std::int32_t* targets = nullptr;
    double* loss = nullptr;  // the sum, one number
};

}  // namespace atl::kernels
