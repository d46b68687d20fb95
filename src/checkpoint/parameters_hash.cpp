#include <bit>

#include "checkpoint/checkpoint.h"
#include "core/hash.h"

namespace atl {

static_assert(std::endian::native == std::endian::little, "checkpoints hold native little-endian values");

std::string parameters_blake2b(const std::map<std::string, std::span<const float>>& tensors) {
    Blake2b hash;
    for (const auto& [name, values] : tensors) hash.update(std::as_bytes(values));
    return hash.hex();
}

}  // namespace atl
