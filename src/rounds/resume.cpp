#include "rounds/resume.h"

#include <fmt/format.h>

#include <optional>
#include <set>

namespace atl {

StartFrom choose_start(const std::map<SiteId, std::vector<CheckpointRef>>& offers,
                       const std::function<bool(const CheckpointRef&)>& usable) {
    std::map<CheckpointRef, std::size_t> holders;  // CheckpointRef orders by step first
    for (const auto& [site, checkpoints] : offers) {
        for (const CheckpointRef& checkpoint :
             std::set<CheckpointRef>(checkpoints.begin(), checkpoints.end())) {
            if (usable(checkpoint)) ++holders[checkpoint];
        }
    }
    StartFrom start;
    if (holders.empty()) {
        start.reason = "no site holds a usable checkpoint: from the initial weights";
        return start;
    }
    std::optional<CheckpointRef> common;
    for (const auto& [checkpoint, count] : holders) {
        if (count == offers.size()) common = checkpoint;
    }
    const CheckpointRef chosen = common.value_or(holders.rbegin()->first);
    start.kind = StartFrom::Kind::checkpoint;
    start.step = chosen.step;
    start.round = chosen.round;
    start.state_hash = chosen.state_hash;
    start.fragments_applied = chosen.fragments_applied;
    start.reason = common ? fmt::format("step {}: the newest checkpoint that all {} sites hold", chosen.step,
                                        offers.size())
                          : fmt::format("step {}: the newest checkpoint of any site; {} of {} sites hold it",
                                        chosen.step, holders[chosen], offers.size());
    return start;
}

}  // namespace atl
