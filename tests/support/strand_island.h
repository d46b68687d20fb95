// Small islands whose strands are planned, the machines their plans are made for, and the bits they end with.
#pragma once

#include <gtest/gtest.h>

#include "island/island.h"
#include "island/strand_planning.h"
#include "support/island_testing.h"
#include "support/local_island.h"
#include "support/threads.h"

namespace atl::test {

inline IslandOptions strands(const ParallelShape& parallel, std::int32_t memory_micro_batches = 0) {
    IslandOptions options = small_island(small_llama(), 1);
    options.model.layers = 5;
    options.batch.sequences_per_step = 6;
    options.schedule = ScheduleKind::strands;
    options.parallel = parallel;
    if (parallel.pp > 1) {
        options.parallel.chunks = 2;
        options.parallel.placement = StagePlacement::fold;
    }
    options.memory_micro_batches = memory_micro_batches;
    return options;
}

// Parameters and moments, where they are whole; collective.
inline std::vector<std::vector<float>> state_of(Island& island) {
    std::vector<std::vector<float>> state;
    for (const TensorKind kind : island.tensor_kinds())
        island.collect(kind, [&](const TensorSpec&, BufferView whole) {
            const auto values = whole.as<float>();
            state.emplace_back(values.begin(), values.end());
        });
    return state;
}

// The gateway's after three steps.
inline std::vector<std::vector<float>> train(const IslandOptions& options) {
    const LocalIsland local(options);
    std::vector<std::vector<float>> state;
    run_ranks(local.size(), [&](std::int32_t rank) {
        Island island(options, local.links(rank));
        island.initialise(3);
        for (int step = 0; step < 3; ++step) EXPECT_TRUE(random_step(island, step).applied);
        auto mine = state_of(island);
        if (rank == 0) state = std::move(mine);
    });
    return state;
}

// Machines on which communication is nothing, a third or nearly all, with and without latency.
inline std::vector<MachineRates> machines() {
    std::vector<MachineRates> machines;
    for (const double bytes_per_second : {1e10, 3e8, 2e7})
        for (const double latency_seconds : {0.0, 1e-5}) {
            MachineRates rates{.flops_per_second = 1e11, .memory_bytes_per_second = 1e10};
            rates.link_intra = rates.point_to_point = {bytes_per_second, latency_seconds};
            machines.push_back(rates);
        }
    return machines;
}

inline MachineRates slow_link() {
    return machines()[2];
}

// A serial plan and two that interleave differently.
inline std::vector<StrandPlan> different_plans(const IslandOptions& options) {
    const auto costs = costs_of(slow_link(), step_fingerprint(options));
    std::vector<StrandPlan> plans = candidate_plans(options, costs, 2);
    plans.push_back(serial_plan("a test"));
    return plans;
}

}  // namespace atl::test
