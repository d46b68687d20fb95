#include "program/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "program/dependencies.h"

namespace atl {
namespace {

using Positions = std::array<std::int32_t, kResources>;

std::int64_t align_up(std::int64_t bytes) {
    return (bytes + kPlacementAlignmentBytes - 1) / kPlacementAlignmentBytes * kPlacementAlignmentBytes;
}

// An activation, or the scratch of one op, with all that touches it.
struct Item {
    std::int64_t bytes = 0;
    std::vector<OpId> touched_by;  // in list order
    std::vector<OpId> written_by;
    Positions last_touch{};    // [resource]: position of its last op there, or -1
    Positions before_write{};  // [resource]: what certainly happens before the first write, or -1
    std::int64_t offset_bytes = -1;

    std::int64_t end() const { return offset_bytes + bytes; }
};

// Items by the index of their value; those of scratch behind them, by op.
std::vector<Item> collect_items(const Program& program) {
    std::vector<Item> items(program.values.size() + program.ops.size());
    for (const auto& value : program.values)
        if (value.role == Role::activation && !value.view_of)
            items[static_cast<std::size_t>(value.id.value())].bytes = value.bytes();
    const auto touch = [&](std::vector<OpId> Item::*ops, ValueId id, OpId op) {
        auto& list = items[static_cast<std::size_t>(program.resolve(id).base.value())].*ops;
        if (list.empty() || list.back() != op) list.push_back(op);
    };
    for (const auto& op : program.ops) {
        for (const auto id : op.reads) touch(&Item::touched_by, id, op.id);
        for (const auto id : op.writes) {
            touch(&Item::touched_by, id, op.id);
            touch(&Item::written_by, id, op.id);
        }
        if (op.scratch_bytes == 0) continue;
        auto& scratch = items[program.values.size() + static_cast<std::size_t>(op.id.value())];
        scratch.bytes = op.scratch_bytes;
        scratch.touched_by = scratch.written_by = {op.id};
    }
    return items;
}

void summarize(Item& item, const HappensBefore& happens_before) {
    item.last_touch.fill(-1);
    item.before_write.fill(std::numeric_limits<std::int32_t>::max());
    for (const auto op : item.touched_by) {
        const auto place = happens_before.place_of(op);
        item.last_touch[place.resource] = place.position;
    }
    for (const auto op : item.written_by)
        for (std::size_t r = 0; r < kResources; ++r)
            item.before_write[r] = std::min(item.before_write[r], happens_before.last_before(op)[r]);
}

// Every op that touches a happens before the first write of b.
bool surely_before(const Item& a, const Item& b) {
    for (std::size_t r = 0; r < kResources; ++r)
        if (a.last_touch[r] > b.before_write[r]) return false;
    return true;
}

// An edge from a send would make this rank wait for its peer's receive, which may itself wait for this rank.
bool far_before(const Item& a, const Item& b, std::int32_t distance) {
    constexpr auto kSend = static_cast<std::size_t>(Resource::send);
    return distance > 0 && a.touched_by.back().value() + distance <= b.written_by.front().value() &&
           a.last_touch[kSend] <= b.before_write[kSend];
}

// Puts items one after another into one arena, each into the smallest gap it fits into.
class BestFit {
  public:
    explicit BestFit(std::int32_t after_edge_distance) : after_edge_distance_(after_edge_distance) {}

    void put(Item& item) {
        std::int64_t best_offset = -1;
        std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
        std::int64_t free_from = 0;
        for (const Item* placed : placed_) {
            if (placed->end() <= free_from || may_share(*placed, item)) continue;
            const std::int64_t gap = placed->offset_bytes - free_from;
            if (gap >= item.bytes && gap < best_gap) {
                best_gap = gap;
                best_offset = free_from;
            }
            free_from = align_up(placed->end());
        }
        item.offset_bytes = best_offset >= 0 ? best_offset : free_from;
        arena_bytes_ = std::max(arena_bytes_, item.end());
        placed_.insert(std::ranges::upper_bound(placed_, item.offset_bytes, {}, &Item::offset_bytes), &item);
    }
    std::int64_t arena_bytes() const { return arena_bytes_; }

  private:
    bool may_share(const Item& a, const Item& b) const {
        if (surely_before(a, b) || surely_before(b, a)) return true;
        return far_before(a, b, after_edge_distance_) || far_before(b, a, after_edge_distance_);
    }

    std::int32_t after_edge_distance_;
    std::vector<const Item*> placed_;  // by offset
    std::int64_t arena_bytes_ = 0;
};

// Tries the orders that do well in practice and keeps the one with the smallest arena.
std::int64_t place_items(std::vector<Item*> items, std::int32_t after_edge_distance) {
    const auto lifetime = [](const Item* item) {
        return item->touched_by.back().value() - item->touched_by.front().value() + 1;
    };
    const auto by_size = [](const Item* a, const Item* b) { return a->bytes > b->bytes; };
    const auto by_lifetime = [&](const Item* a, const Item* b) { return lifetime(a) > lifetime(b); };
    std::int64_t least_bytes = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> best_offsets;
    const auto attempt = [&](auto order) {
        std::ranges::stable_sort(items, order);
        BestFit arena(after_edge_distance);
        for (auto* item : items) arena.put(*item);
        if (arena.arena_bytes() >= least_bytes) return;
        least_bytes = arena.arena_bytes();
        best_offsets.clear();
        std::ranges::sort(items);
        for (const auto* item : items) best_offsets.push_back(item->offset_bytes);
    };
    const auto by_area = [&](const Item* a, const Item* b) {
        return a->bytes * lifetime(a) > b->bytes * lifetime(b);
    };
    attempt(by_size);
    attempt(by_lifetime);
    attempt(by_area);
    std::ranges::sort(items);
    for (std::size_t i = 0; i < items.size(); ++i) items[i]->offset_bytes = best_offsets[i];
    return items.empty() ? 0 : least_bytes;
}

// Makes what shares bytes without being ordered wait: the later one's writers for the earlier one's last ops.
void add_after_edges(Program& program, std::vector<Item*> items) {
    const HappensBefore happens_before(program);
    std::ranges::sort(items, {}, [](const Item* item) { return item->offset_bytes; });
    for (std::size_t i = 0; i < items.size(); ++i)
        for (std::size_t j = i + 1; j < items.size() && items[j]->offset_bytes < items[i]->end(); ++j) {
            if (surely_before(*items[i], *items[j]) || surely_before(*items[j], *items[i])) continue;
            const bool forward = items[i]->touched_by.back() < items[j]->written_by.front();
            const Item& first = forward ? *items[i] : *items[j];
            const Item& second = forward ? *items[j] : *items[i];
            for (const auto op : first.touched_by) {
                const auto place = happens_before.place_of(op);
                if (first.last_touch[place.resource] != place.position) continue;
                for (const auto writer : second.written_by)
                    if (!happens_before(op, writer))
                        program.ops[static_cast<std::size_t>(writer.value())].after.push_back(op);
            }
        }
    for (auto& op : program.ops) {
        std::ranges::sort(op.after);
        op.after.erase(std::ranges::unique(op.after).begin(), op.after.end());
    }
}

}  // namespace

std::int64_t Placement::peak_bytes() const {
    return std::accumulate(arena_bytes.begin(), arena_bytes.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& arena) { return sum + arena.second; });
}

ArenaId arena_of(const Program& program, ValueId id) {
    const Value& base = program.value(program.resolve(id).base);
    return {base.role, base.space};
}

Placement place(Program& program, const PlacementOptions& options) {
    auto items = collect_items(program);
    const HappensBefore happens_before(program);
    std::map<ArenaId, std::vector<Item*>> reused;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].bytes == 0) continue;
        const bool is_scratch = i >= program.values.size();
        ATOLL_CHECK(!items[i].written_by.empty(), "{} is never written", program.values[i].name);
        summarize(items[i], happens_before);
        reused[{Role::activation, is_scratch ? Space::device : program.values[i].space}].push_back(&items[i]);
    }

    Placement placement;
    for (const auto& [arena, members] : reused)
        placement.arena_bytes[arena] = place_items(members, options.after_edge_distance);
    if (options.after_edge_distance > 0)
        for (const auto& [arena, members] : reused) add_after_edges(program, members);

    placement.value_offset_bytes.resize(program.values.size(), 0);
    for (const auto& value : program.values) {
        auto& offset = placement.value_offset_bytes[static_cast<std::size_t>(value.id.value())];
        if (value.view_of) continue;
        if (value.role == Role::activation) {
            offset =
                std::max<std::int64_t>(items[static_cast<std::size_t>(value.id.value())].offset_bytes, 0);
            continue;
        }
        auto& arena_bytes = placement.arena_bytes[{value.role, value.space}];
        offset = align_up(arena_bytes);
        arena_bytes = offset + value.bytes();
    }
    for (const auto& value : program.values)
        if (value.view_of) {
            const auto range = byte_range(program, value.id);
            placement.value_offset_bytes[static_cast<std::size_t>(value.id.value())] =
                placement.value_offset_bytes[static_cast<std::size_t>(range.base.value())] + range.begin;
        }
    for (std::size_t i = program.values.size(); i < items.size(); ++i)
        placement.scratch_offset_bytes.push_back(items[i].bytes == 0 ? -1 : items[i].offset_bytes);
    return placement;
}

}  // namespace atl
