// Bench: how fast an island of one rank trains, on fresh random tokens, beside the matmul peak of the same run.
//
// Threads: uses `island.threads`. Cost: one untimed step, then `steps` steps with a peak measurement before,
// between and after them.
#pragma once

#include <cstdint>
#include <vector>

#include "island/island.h"

namespace atl {

struct BenchOptions {
    IslandOptions island;
    std::int64_t steps = 10;
    std::uint64_t seed = 1;
};

struct BenchResult {
    std::int64_t steps = 0;
    std::int64_t tokens_per_step = 0;
    std::vector<double> step_seconds;
    double tokens_per_second = 0;             // from the median step
    double best_tokens_per_second = 0;        // from the fastest step
    double flops_per_second = 0;              // model flops of the median step
    double matmul_peak_flops_per_second = 0;  // median of the run's measurements
    double model_flops_utilization = 0;       // flops_per_second / peak
    double forward_share = 0;                 // of the step's seconds, as are the next three
    double backward_share = 0;
    double optimizer_share = 0;
    double communication_share = 0;
    std::map<OpKind, double> kind_share;
    std::int64_t peak_bytes_predicted = 0;
    std::int64_t peak_bytes_measured = 0;
    std::int64_t allocations_in_steps = 0;
    double final_loss = 0;
};

BenchResult run_bench(const BenchOptions& options);

// Flops per second of square matrix products at the best of a few sizes, on `threads` threads; about 0.3 s.
double measure_matmul_peak(std::int32_t threads, DType dtype = DType::f32);

}  // namespace atl
