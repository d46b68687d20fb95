#include "model/collectives.h"

#include <fmt/ranges.h>

#include "core/check.h"

namespace atl {

Collectives::Collectives(StepBuilder& builder, const ParallelShape& parallel)
    : builder_(builder), plain_data_parallel_(parallel.tp == 1 && parallel.pp == 1) {
    const auto place = place_of(parallel, builder.program().rank);
    for (std::int32_t tp = 0; tp < parallel.tp; ++tp)
        tensor_parallel_.push_back(rank_at(parallel, {tp, place.pp, place.dp}));
    for (std::int32_t dp = 0; dp < parallel.dp; ++dp)
        data_parallel_.push_back(rank_at(parallel, {place.tp, place.pp, dp}));
    for (std::int32_t rank = 0; rank < parallel.ranks(); ++rank) world_.push_back(Rank(rank));
}

std::string Collectives::name_of(const std::vector<Rank>& members) const {
    if (members == tensor_parallel_) return "tp";
    if (members == data_parallel_) return "dp";
    if (members == world_) return "world";
    return fmt::format("ranks_{}", fmt::join(members, "_"));
}

Op Collectives::make(OpKind kind, const std::vector<Rank>& members, ValueId read, ValueId written) {
    ATOLL_CHECK_LT(1u, members.size());
    const auto name = name_of(members);
    builder_.add_group(name, members);
    // Of the whole: a piece is what one member has of it.
    const auto& whole = builder_.program().value(kind == OpKind::all_gather ? written : read);
    const auto ranks = static_cast<std::int64_t>(members.size());
    const bool both_ways = kind == OpKind::all_reduce || kind == OpKind::all_reduce_max;
    return {.kind = kind,
            .attributes = CollectiveAttributes{name, 0},
            .reads = {read},
            .writes = {written},
            .resource = name == "tp" || plain_data_parallel_ ? Resource::link_intra : Resource::link_inter,
            .bytes = (both_ways ? 2 : 1) * (ranks - 1) * whole.bytes() / ranks};
}

}  // namespace atl
