#include "core/dtype.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace atl {
namespace {

struct Description {
    DType dtype;
    std::string_view name;
    std::int64_t size_bytes;
};

constexpr std::array kDTypes = {
    Description{DType::f32, "f32", 4},   Description{DType::f64, "f64", 8}, Description{DType::f16, "f16", 2},
    Description{DType::bf16, "bf16", 2}, Description{DType::i32, "i32", 4}, Description{DType::i64, "i64", 8},
    Description{DType::u8, "u8", 1},     Description{DType::u16, "u16", 2},
};

const Description& describe(DType dtype) {
    const auto index = static_cast<std::size_t>(dtype);
    ATOLL_CHECK_LT(index, kDTypes.size());
    return kDTypes[index];
}

}  // namespace

std::int64_t size_bytes(DType dtype) {
    return describe(dtype).size_bytes;
}
std::string_view name(DType dtype) {
    return describe(dtype).name;
}

DType dtype_from_name(std::string_view name) {
    for (const auto& candidate : kDTypes)
        if (candidate.name == name) return candidate.dtype;
    throw UserError(fmt::format("unknown dtype \"{}\"; known: f32, f64, f16, bf16, i32, i64, u8, u16", name));
}

}  // namespace atl
