#include "program/dependencies.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

struct Access {
    OpId op;
    ByteRange range;
};

// What later ops may still have to wait for on one base value. A write hides what lies under it wholly: whoever
// waits for the write waits for that too.
struct VisibleAccesses {
    std::vector<Access> writes;
    std::vector<Access> reads;

    void add_write(const Access& access) {
        const auto covered = [&](const Access& earlier) {
            return earlier.op != access.op && access.range.begin <= earlier.range.begin &&
                   earlier.range.end <= access.range.end;
        };
        std::erase_if(writes, covered);
        std::erase_if(reads, covered);
        writes.push_back(access);
    }
};

void collect(const std::vector<Access>& earlier, const ByteRange& range, std::vector<OpId>& ops) {
    for (const auto& access : earlier)
        if (access.range.overlaps(range)) ops.push_back(access.op);
}

using Positions = std::array<std::int32_t, kResources>;

void merge(Positions& last, const Positions& other) {
    for (std::size_t r = 0; r < kResources; ++r) last[r] = std::max(last[r], other[r]);
}

}  // namespace

ByteRange byte_range(const Program& program, ValueId id) {
    const Value& value = program.value(id);
    const auto [base, offset] = program.resolve(id);
    const std::int64_t begin = offset * size_bytes(value.dtype);
    return {base, begin, begin + value.bytes()};
}

std::vector<std::vector<OpId>> data_edges(const Program& program) {
    std::vector<VisibleAccesses> visible(program.values.size());
    std::vector<std::vector<OpId>> edges(program.ops.size());
    const auto at = [&](const ByteRange& range) -> VisibleAccesses& {
        return visible[static_cast<std::size_t>(range.base.value())];
    };
    for (const auto& op : program.ops) {
        auto& before = edges[static_cast<std::size_t>(op.id.value())];
        std::vector<ByteRange> reads, writes;
        for (const auto id : op.reads) reads.push_back(byte_range(program, id));
        for (const auto id : op.writes) writes.push_back(byte_range(program, id));
        for (const auto& range : reads) collect(at(range).writes, range, before);
        for (const auto& range : writes) {
            collect(at(range).writes, range, before);
            collect(at(range).reads, range, before);
        }
        for (const auto& range : reads) at(range).reads.push_back({op.id, range});
        for (const auto& range : writes) at(range).add_write({op.id, range});
        std::ranges::sort(before);
        before.erase(std::ranges::unique(before).begin(), before.end());
    }
    return edges;
}

HappensBefore::HappensBefore(const Program& program)
    : places_(program.ops.size()), last_before_(program.ops.size()) {
    const auto edges = data_edges(program);
    std::vector<Positions> last_at_end(program.ops.size());  // [op]: as last_before_, but when it ends
    std::array<std::int32_t, kResources> issued{};
    std::array<std::size_t, kResources> newest{};
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        const Op& op = program.ops[i];
        const auto resource = static_cast<std::size_t>(op.resource);
        auto& start = last_before_[i];
        auto& end = last_at_end[i];
        start.fill(-1);
        const auto wait_for = [&](OpId earlier) {
            ATOLL_CHECK_LT(earlier, op.id, "an op waits for one behind it");
            merge(start, last_at_end[static_cast<std::size_t>(earlier.value())]);
        };
        for (const auto earlier : edges[i]) wait_for(earlier);
        for (const auto earlier : op.after) wait_for(earlier);
        const bool is_first = issued[resource] == 0;
        if (!is_first) {
            merge(start,
                  posts_ahead(op.resource) ? last_before_[newest[resource]] : last_at_end[newest[resource]]);
        }
        end = start;
        if (!is_first) merge(end, last_at_end[newest[resource]]);
        end[resource] = issued[resource];
        places_[i] = {resource, issued[resource]++};
        newest[resource] = i;
    }
}

}  // namespace atl
