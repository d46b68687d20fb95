// Segment search: the best way to cut a pair's strands into blocks that run one after another, a run of ops of one
// strand beside a run of the other, with a barrier behind each block.
//
// Dynamic program with joint segmentation: over (ops done of the first strand, of the second, weight gradients that
// are free to run but pending), T = min over blocks of T(before) + the block's time under the fluid model. Pending are
// at most the last four, hence 2^4 subsets. A block holds no two communication ops of one link, and starts its
// communication before the other strand's compute. States whose live bytes pass the budget are left out: what lives
// follows from the state alone. Exact for the order in which the strands' ops stand; tested against brute force.
// Source: Wang et al., "DHelix", 2024, with cuts and movements of weight gradients searched together.
// Cost: O(first x second x longest^2 x subsets) within the band; 112 x 112 ops take some tenths of a second.
#pragma once

#include <optional>

#include "program/strand_pair.h"

namespace atl {

struct StrandBlock {
    std::vector<std::int32_t> order;  // of issue
    double seconds = 0;
    bool operator==(const StrandBlock&) const = default;
};

struct SegmentSearchOptions {
    std::int32_t longest_segment = 5;  // ops of one strand in a block
    bool moves_weight_gradients = true;
    double barrier_seconds = 0;  // behind each block
    std::int64_t most_bytes =
        std::numeric_limits<std::int64_t>::max();  // live at once, relative to the start
    double band = 1;                               // how far the strands' shares of ops done may lie apart
};

struct SegmentPlan {
    std::vector<StrandBlock> blocks;
    double seconds = 0;  // with barriers

    std::vector<std::int32_t> order() const;
};

// Nothing if no sequence of blocks keeps within the bytes. The strands must not wait for each other (a failed check).
std::optional<SegmentPlan> search_segments(const StrandPair& pair, const OverlapModel& overlap,
                                           const SegmentSearchOptions& options);

// The issue order of a block: the strand that comes to its communication sooner up to and with it, the other strand,
// the weight gradients, and what is left of the first. Either strand may be the sooner one; the faster order counts.
StrandBlock make_block(StrandClock& clock, const StrandPair& pair, std::span<const std::int32_t> first,
                       std::span<const std::int32_t> second, std::span<const std::int32_t> weights);

}  // namespace atl
