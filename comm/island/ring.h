// The ring all-reduce as arithmetic: who owns which chunk, and in which order a chunk is summed. Both
// implementations of IslandCollective follow it, so they give the same bits.
//
// Source: Patarasu & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (JPDC 2009).
#pragma once

#include <cstdint>

namespace atl {

// The elements of chunk `chunk` when `count` elements are cut for `size` members, as evenly as possible.
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

// In step s of the first phase member r sends chunk r - s to its right neighbour, which adds its own values to
// what came. So chunk c begins as member c's, and members c+1, c+2, … add theirs in this order: the sum is
// (((x_c + x_{c+1}) + x_{c+2}) + …). It is complete at member c - 1.
inline std::int32_t ring_sent_chunk(std::int32_t rank, std::int32_t step, std::int32_t size) {
    return ring_modulo(rank - step, size);
}

// In step s of the second phase member r sends chunk r + 1 - s, complete by then, and gets chunk r - s.
inline std::int32_t ring_passed_chunk(std::int32_t rank, std::int32_t step, std::int32_t size) {
    return ring_modulo(rank + 1 - step, size);
}

}  // namespace atl
