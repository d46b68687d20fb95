// Loops over independent tasks on the caller's OpenMP threads.
//
// Tasks must not depend on which thread runs them or on how many there are. One thread or one task: a plain
// loop without OpenMP. Under the thread sanitizer always a plain loop: it can't see into OpenMP's runtime.
#pragma once

#include <omp.h>

#include <cstdint>

#include "kernels/instruction_set.h"

namespace atl::kernels::ATOLL_INSTRUCTION_SET {

#if defined(__SANITIZE_THREAD__)
inline int usable_threads() {
    return 1;
}
#else
inline int usable_threads() {
    return omp_get_max_threads();
}
#endif

// body(task, thread) for every task in [0, tasks); thread < max_threads.
template <class Body>
void parallel_tasks(std::int64_t tasks, int max_threads, Body body) {
    int threads = usable_threads();
    if (threads > max_threads) threads = max_threads;
    if (threads > tasks) threads = static_cast<int>(tasks);
    if (threads <= 1) {
        for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
        return;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (std::int64_t task = 0; task < tasks; ++task) body(task, omp_get_thread_num());
}

struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

// The part-th of `parts` nearly equal pieces of [0, count), cut at multiples of `granule`.
inline Range piece(std::int64_t count, std::int64_t parts, std::int64_t part, std::int64_t granule = 1) {
    const std::int64_t granules = (count + granule - 1) / granule;
    const std::int64_t begin = granules * part / parts * granule;
    const std::int64_t end = granules * (part + 1) / parts * granule;
    return {begin < count ? begin : count, end < count ? end : count};
}

// body(range) over one piece per thread. For work whose result doesn't depend on how it is cut.
template <class Body>
void parallel_ranges(std::int64_t count, std::int64_t granule, Body body) {
    // Below about this many elements starting threads costs more than it saves.
    constexpr std::int64_t kSmallestPiece = 4096;
    const std::int64_t useful = (count + kSmallestPiece - 1) / kSmallestPiece;
    std::int64_t parts = usable_threads();
    if (parts > useful) parts = useful > 0 ? useful : 1;
    parallel_tasks(parts, static_cast<int>(parts),
                   [&](std::int64_t part, int) { body(piece(count, parts, part, granule)); });
}

}  // namespace atl::kernels::ATOLL_INSTRUCTION_SET
