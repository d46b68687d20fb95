// All schedules of some sizes, for tests that go through them.
#pragma once

#include <fmt/format.h>

#include "program/schedule_table.h"

namespace atl::test {

inline constexpr std::int32_t kMostRanks = 8, kMostMicroBatches = 32;

// Every schedule of these sizes, the interleaved one with several numbers of chunks.
template <class Visit>
void for_each_schedule(Visit&& visit) {
    for (std::int32_t ranks = 1; ranks <= kMostRanks; ++ranks)
        for (std::int32_t m = 1; m <= kMostMicroBatches; ++m)
            for (int kind = 0; kind <= static_cast<int>(ScheduleKind::strands); ++kind) {
                ScheduleOptions options{static_cast<ScheduleKind>(kind), ranks, m};
                if (options.kind != ScheduleKind::interleaved) {
                    visit(options);
                    continue;
                }
                for (options.chunks = 1; options.chunks <= 4; ++options.chunks) visit(options);
            }
}

inline std::string describe(const ScheduleOptions& options) {
    return fmt::format("{}, {} ranks, {} micro-batches, {} chunks, memory {}", name(options.kind),
                       options.ranks, options.micro_batches, options.chunks, options.memory_micro_batches);
}

}  // namespace atl::test
