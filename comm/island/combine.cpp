#include "comm/island/combine.h"

#include "core/check.h"

namespace atl {
namespace {

// An element is read before it is written, and no other one is touched: so the vector form is right for result == own.
template <class T, class Combine>
void combine_elements(std::byte* result_bytes, const std::byte* came_bytes, const std::byte* own_bytes,
                      std::int64_t bytes, Combine combine) {
    T* result = reinterpret_cast<T*>(result_bytes);
    const T* came = reinterpret_cast<const T*>(came_bytes);
    const T* own = reinterpret_cast<const T*>(own_bytes);
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(T));
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) result[i] = combine(came[i], own[i]);
}

template <class T>
void combine_typed(Combination combination, std::byte* result, const std::byte* came, const std::byte* own,
                   std::int64_t bytes) {
    if (combination == Combination::sum) {
        combine_elements<T>(result, came, own, bytes, [](T a, T b) { return a + b; });
    } else {
        // A comparison with NaN is false: so a NaN that came stays, and the own one is asked for.
        combine_elements<T>(result, came, own, bytes, [](T a, T b) { return b > a || b != b ? b : a; });
    }
}

}  // namespace

void combine(Combination combination, DType dtype, std::byte* result, const std::byte* came,
             const std::byte* own, std::int64_t bytes) {
    if (dtype == DType::f64) return combine_typed<double>(combination, result, came, own, bytes);
    ATOLL_CHECK(dtype == DType::f32, "{} is not combined", name(dtype));
    combine_typed<float>(combination, result, came, own, bytes);
}

}  // namespace atl
