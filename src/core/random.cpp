#include "core/random.h"

#include <cmath>
#include <numbers>

#include "core/check.h"
#include "core/hash.h"

namespace atl {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
                   static_cast<std::uint32_t>(product1),
                   static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
                   static_cast<std::uint32_t>(product0)};
        key[0] += 0x9E3779B9;
        key[1] += 0xBB67AE85;
    }
    return counter;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view stream)
    : RandomStream(seed, xxh3_64(std::as_bytes(std::span(stream)))) {}

std::uint64_t RandomStream::bits(std::uint64_t index) const {
    const auto block =
        philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
               {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    return std::uint64_t{block[0]} | std::uint64_t{block[1]} << 32;
}

double RandomStream::uniform(std::uint64_t index) const {
    return static_cast<double>(bits(index) >> 11) * 0x1.0p-53;
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
    ATOLL_CHECK_LT(std::uint64_t{0}, bound);
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
}

double RandomStream::normal(std::uint64_t index) const {
    // Elements 2k and 2k+1 share one Box-Muller pair, so neighbours cost one logarithm between them in bulk
    // use.
    const std::uint64_t pair = index / 2;
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform(2 * pair)));
    const double angle = 2.0 * std::numbers::pi * uniform(2 * pair + 1);
    return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

RandomPermutation::RandomPermutation(std::uint64_t seed, std::uint64_t stream, std::uint64_t size)
    : random_(seed, stream), size_(size), half_bits_(1) {
    ATOLL_CHECK_LT(std::uint64_t{0}, size);
    while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

std::uint64_t RandomPermutation::operator()(std::uint64_t position) const {
    ATOLL_CHECK_LT(position, size_);
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t value = position;
    do {
        std::uint64_t left = value >> half_bits_;
        std::uint64_t right = value & mask;
        for (std::uint64_t round = 0; round < 4; ++round) {
            const std::uint64_t mixed = left ^ (random_.bits(right | round << 32) & mask);
            left = right;
            right = mixed;
        }
        value = left << half_bits_ | right;
    } while (value >= size_);
    return value;
}

}  // namespace atl
