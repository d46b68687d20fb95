// Large runs of bytes and the processor's caches. The processor fetches ahead only to the end of a page, and so waits for
// memory half as long where it is in several pages at once.
//
// Threads: any. Cost: one pass.
#pragma once

#include <cstddef>
#include <span>

namespace atl {

// For what this thread won't read again soon: to memory and not into its cache. Whoever is told of it by a lock, an
// atomic or a system call sees it.
void copy_past_cache(std::span<const std::byte> from, std::byte* to);

// Into the cache, if not all of it is too much for that: what reads it one byte after another waits no longer.
void fetch_into_cache(std::span<const std::byte> bytes);

}  // namespace atl
