// A typed run of elements that somebody else owns.
#pragma once

#include <span>

#include "core/check.h"
#include "core/dtype.h"

namespace atl {

struct BufferView {
    void* data = nullptr;
    std::int64_t count = 0;  // elements
    DType dtype = DType::f32;
    Device device = Device::cpu;

    std::int64_t bytes() const { return count * size_bytes(dtype); }

    template <class T>
    std::span<T> as() const {
        ATOLL_CHECK_EQ(static_cast<std::int64_t>(sizeof(T)), size_bytes(dtype), "{}", name(dtype));
        return {static_cast<T*>(data), static_cast<std::size_t>(count)};
    }
};

inline BufferView view_of(std::span<float> values) {
    return {values.data(), static_cast<std::int64_t>(values.size()), DType::f32, Device::cpu};
}
inline BufferView view_of(std::span<double> values) {
    return {values.data(), static_cast<std::int64_t>(values.size()), DType::f64, Device::cpu};
}

}  // namespace atl
