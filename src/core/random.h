// Counter-based random numbers: the i-th number of a stream is a pure function of (seed, stream, i), so
// order, layout and threads never matter. The bits are the same on every processor.
//
// Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC'11), Philox-4x32-10.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace atl {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

class RandomStream {
  public:
    RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
    // A stream named by text, for example a tensor's name.
    RandomStream(std::uint64_t seed, std::string_view stream);

    std::uint64_t bits(std::uint64_t index) const;                        // 64 uniform bits
    double uniform(std::uint64_t index) const;                            // [0, 1)
    std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;  // [0, bound), bound > 0
    // N(0, 1), by inversion of the distribution function: about 40 ns, no library function whose last bit may differ.
    double normal(std::uint64_t index) const;

  private:
    std::uint64_t seed_;
    std::uint64_t stream_;
};

// A pseudo-random permutation of [0, size): position → element, without a table. O(1) expected.
// Source: a four-round Feistel network with cycle walking (Black & Rogaway, CT-RSA 2002).
class RandomPermutation {
  public:
    RandomPermutation(std::uint64_t seed, std::uint64_t stream, std::uint64_t size);
    std::uint64_t operator()(std::uint64_t position) const;

  private:
    RandomStream random_;
    std::uint64_t size_;
    int half_bits_;
};

}  // namespace atl
