#include "core/cache.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace atl {

namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kPlaces = 4;  // at once

void copy_line_past_cache(const std::byte* from, std::byte* to) {
    for (std::size_t i = 0; i < kLineBytes; i += sizeof(__m128i)) {
        const __m128i piece = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), piece);
    }
}

}  // namespace

void copy_past_cache(std::span<const std::byte> from, std::byte* to) {
    const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(to) % kLineBytes;
    const std::size_t begin = misplaced == 0 ? 0 : std::min(kLineBytes - misplaced, from.size());
    if (begin > 0) std::memcpy(to, from.data(), begin);
    from = from.subspan(begin);
    to += begin;
    const std::size_t part = from.size() / kPlaces / kLineBytes * kLineBytes;
    for (std::size_t i = 0; i < part; i += kLineBytes) {
        for (std::size_t place = 0; place < kPlaces; ++place)
            copy_line_past_cache(from.data() + place * part + i, to + place * part + i);
    }
    const std::size_t rest = kPlaces * part;
    if (rest < from.size()) std::memcpy(to + rest, from.data() + rest, from.size() - rest);
    _mm_sfence();  // such stores overtake the ones after them
}

void fetch_into_cache(std::span<const std::byte> bytes) {
    const std::size_t part = bytes.size() / kPlaces;
    for (std::size_t i = 0; i < part; i += kLineBytes) {
        for (std::size_t place = 0; place < kPlaces; ++place)
            _mm_prefetch(reinterpret_cast<const char*>(bytes.data() + place * part + i), _MM_HINT_T1);
    }
}

}  // namespace atl
