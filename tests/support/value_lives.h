// When and where the values of a placed program live in a timed run.
#pragma once

#include <algorithm>
#include <vector>

#include "program/placement.h"
#include "program/virtual_executor.h"

namespace atl::test {

struct Life {
    std::int64_t begin_byte = 0, end_byte = 0;
    double from_seconds = 1e300, to_seconds = 0;
};

// Every activation's and scratch's bytes, and the time from the start of the first op that touches it to the end of
// the last. times[op].
inline std::vector<Life> lives(const Program& program, const Placement& placement,
                               const std::vector<OpTime>& times) {
    std::vector<Life> by_value(program.values.size());
    std::vector<Life> all;
    for (const auto& op : program.ops) {
        const auto index = static_cast<std::size_t>(op.id.value());
        const auto& time = times[index];
        for (const auto* ids : {&op.reads, &op.writes})
            for (const auto id : *ids) {
                auto& life = by_value[static_cast<std::size_t>(program.resolve(id).base.value())];
                life.from_seconds = std::min(life.from_seconds, time.start_seconds);
                life.to_seconds = std::max(life.to_seconds, time.end_seconds);
            }
        const auto offset = placement.scratch_offset_bytes[index];
        if (op.scratch_bytes > 0)
            all.push_back({offset, offset + op.scratch_bytes, time.start_seconds, time.end_seconds});
    }
    for (const auto& value : program.values) {
        if (value.view_of || value.role != Role::activation) continue;
        const auto index = static_cast<std::size_t>(value.id.value());
        by_value[index].begin_byte = placement.value_offset_bytes[index];
        by_value[index].end_byte = by_value[index].begin_byte + value.bytes();
        all.push_back(by_value[index]);
    }
    return all;
}

inline bool two_alive_on_one_byte(const std::vector<Life>& all) {
    for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = i + 1; j < all.size(); ++j) {
            const bool share_bytes =
                all[i].begin_byte < all[j].end_byte && all[j].begin_byte < all[i].end_byte;
            const bool live_at_once =
                all[i].from_seconds < all[j].to_seconds && all[j].from_seconds < all[i].to_seconds;
            if (share_bytes && live_at_once) return true;
        }
    return false;
}

}  // namespace atl::test
