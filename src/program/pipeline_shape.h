// Where the stages of a pipeline live. An island has `ranks · chunks` virtual stages, each a run of consecutive
// layers; every pipeline rank holds `chunks` of them.
//
// round_robin: stage s on rank s mod ranks (Narayanan et al., "Efficient large-scale language model training on GPU
// clusters using Megatron-LM", SC 2021). fold: two stages a rank, r and 2 · ranks - 1 - r, so that both ends of the
// model are on rank 0 (Qi et al., "Zero bubble pipeline parallelism", 2024, which calls it V). Plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace atl {

enum class StagePlacement : std::uint8_t { round_robin, fold };

struct PipelineShape {
    std::int32_t ranks = 1;   // pp
    std::int32_t chunks = 1;  // stages of a rank; 2 for fold
    StagePlacement placement = StagePlacement::round_robin;

    std::int32_t stages() const { return ranks * chunks; }
    std::int32_t rank_of(std::int32_t stage) const {
        const bool folds_back = placement == StagePlacement::fold && stage >= ranks;
        return folds_back ? stages() - 1 - stage : stage % ranks;
    }
    std::vector<std::int32_t> stages_of(std::int32_t rank) const {  // ascending
        std::vector<std::int32_t> held;
        for (std::int32_t stage = 0; stage < stages(); ++stage)
            if (rank_of(stage) == rank) held.push_back(stage);
        return held;
    }
    bool operator==(const PipelineShape&) const = default;
};

}  // namespace atl
