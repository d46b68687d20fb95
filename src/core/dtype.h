// Element types and where bytes live.
#pragma once

#include <cstdint>
#include <string_view>

namespace atl {

// The numbers stand in files and packets: never renumber.
enum class DType : std::uint8_t { f32 = 0, f64 = 1, f16 = 2, bf16 = 3, i32 = 4, i64 = 5, u8 = 6, u16 = 7 };
enum class Device : std::uint8_t { cpu = 0, cuda = 1 };

std::int64_t size_bytes(DType dtype);
std::string_view name(DType dtype);
DType dtype_from_name(std::string_view name);  // throws UserError for an unknown name

}  // namespace atl
