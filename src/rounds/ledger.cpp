#include "rounds/ledger.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

// Appends a range, growing the last one if it continues it.
void append(std::vector<BlockRange>& ranges, const BlockRange& range) {
    if (!ranges.empty()) {
        BlockRange& last = ranges.back();
        if (last.epoch == range.epoch && last.first + last.count == range.first) {
            last.count += range.count;
            return;
        }
    }
    ranges.push_back(range);
}

}  // namespace

std::vector<BlockRange> Ledger::lease(SiteId site, std::int64_t count) {
    ATOLL_CHECK(blocks_per_epoch > 0, "the ledger has {} blocks per epoch", blocks_per_epoch);
    ATOLL_CHECK(!leases.contains(site), "site {} already has a lease", site);
    std::vector<BlockRange> taken;
    while (count > 0 && !returned.empty()) {
        BlockRange& front = returned.front();
        const std::int64_t part = std::min(count, front.count);
        append(taken, {front.epoch, front.first, part});
        front.first += part;
        front.count -= part;
        count -= part;
        if (front.count == 0) returned.erase(returned.begin());
    }
    while (count > 0) {
        const std::int64_t part = std::min(count, blocks_per_epoch - next_block);
        append(taken, {next_epoch, next_block, part});
        next_block += part;
        count -= part;
        if (next_block == blocks_per_epoch) {
            next_block = 0;
            ++next_epoch;
        }
    }
    leases[site] = taken;
    return taken;
}

void Ledger::give_back(SiteId site) {
    const auto lease = leases.find(site);
    if (lease == leases.end()) return;
    std::vector<BlockRange> all = returned;
    all.insert(all.end(), lease->second.begin(), lease->second.end());
    leases.erase(lease);
    std::sort(all.begin(), all.end());
    returned.clear();
    for (const BlockRange& range : all) append(returned, range);
}

void Ledger::settle(const std::vector<SiteId>& contributors) {
    for (const SiteId site : contributors) leases.erase(site);
    while (!leases.empty()) give_back(leases.begin()->first);
}

}  // namespace atl
