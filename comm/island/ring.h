// The ring as arithmetic: who owns which chunk of a buffer, and in which order a chunk is summed. Both implementations
// of IslandCollective follow it, so they give the same bits.
//
// Source: Patarasu & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (JPDC 2009).
#pragma once

#include <cstdint>

namespace atl {

// Chunk `chunk` when `count` rows, or elements, are cut for `size` members, as evenly as possible.
struct RingChunk {
    std::int64_t begin = 0;
    std::int64_t end = 0;  // one past the last
    std::int64_t size() const { return end - begin; }
};

inline RingChunk ring_chunk(std::int64_t count, std::int32_t size, std::int32_t chunk) {
    return {count * chunk / size, count * (chunk + 1) / size};
}

inline std::int32_t ring_modulo(std::int32_t value, std::int32_t size) {
    return (value % size + size) % size;
}

// In step s of the first phase, reduce-scatter, member r sends chunk r - 1 - s to its right neighbour, which adds its
// own values to what came. So chunk c begins as member c+1's, and members c+2, c+3, … add theirs in this order: the
// sum is (((x_{c+1} + x_{c+2}) + …) + x_c). It is complete at member c.
inline std::int32_t ring_summed_chunk(std::int32_t rank, std::int32_t step, std::int32_t size) {
    return ring_modulo(rank - 1 - step, size);
}
// The member whose values come `position`-th in the sum of a chunk.
inline std::int32_t ring_addend(std::int32_t chunk, std::int32_t position, std::int32_t size) {
    return ring_modulo(chunk + 1 + position, size);
}

// In step s of the second phase, all-gather, member r sends chunk r - s, and gets chunk r - 1 - s.
inline std::int32_t ring_passed_chunk(std::int32_t rank, std::int32_t step, std::int32_t size) {
    return ring_modulo(rank - step, size);
}

}  // namespace atl
