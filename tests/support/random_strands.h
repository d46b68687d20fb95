// Random strand pairs: two chains of ops, the second with weight gradients, as pure functions of a seed.
#pragma once

#include "program/strand_pair.h"
#include "support/random_program.h"

namespace atl::test {

struct RandomStrandsOptions {
    std::uint64_t seed = 0;
    std::int64_t longest = 8;  // ops of a chain
    std::int64_t most_weights = 3;
    bool two_links = true;
};

// Ops of one strand follow one another; a weight gradient waits for an op of its strand. Some durations are equal, so
// that segments are alike.
inline StrandPair random_strands(const RandomStrandsOptions& options) {
    RandomChoice random(options.seed);
    StrandPair pair;
    for (std::int32_t strand = 0; strand < 2; ++strand) {
        const auto count = 1 + random.below(options.longest);
        std::int32_t previous = -1;
        auto weights = strand == 1 ? random.below(options.most_weights + 1) : 0;
        for (std::int64_t i = 0; i < count; ++i) {
            PairOp op{.strand = strand, .seconds = static_cast<double>(1 + random.below(6))};
            if (random.below(5) < 2) {
                const bool far = options.two_links && random.one_in(4);
                op.op_class = {OpFamily::reduce, far ? Resource::link_inter : Resource::link_intra};
            }
            if (previous >= 0) op.waits_for = {previous};
            previous = static_cast<std::int32_t>(pair.ops.size());
            pair.ops.push_back(op);
            if (weights > 0 && random.one_in(2)) {
                --weights;
                pair.ops.push_back(
                    {.strand = strand,
                     .seconds = static_cast<double>(1 + random.below(6)),
                     .waits_for = random.one_in(8) ? std::vector<std::int32_t>{} : std::vector{previous},
                     .movable = true});
            }
        }
        if (strand == 0) pair.first_ops = pair.ops.size();
    }
    return pair;
}

// One slowdown for compute, one for either link.
inline OverlapModel random_overlap(std::uint64_t seed) {
    RandomChoice random(seed + 77);
    std::vector<PairSlowdown> pairs;
    for (const auto link : {Resource::link_intra, Resource::link_inter})
        pairs.push_back({.first = {},
                         .second = {OpFamily::reduce, link},
                         .first_slowdown = 1 + 0.1 * static_cast<double>(random.below(8)),
                         .second_slowdown = 1 + 0.1 * static_cast<double>(random.below(8))});
    return OverlapModel(pairs);
}

}  // namespace atl::test
