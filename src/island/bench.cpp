#include "island/bench.h"

#include <algorithm>

#include "core/check.h"
#include "core/random.h"
#include "core/statistics.h"
#include "island/random_tokens.h"

namespace atl {
namespace {

double share(const StepTimes& times, double seconds) {
    return times.step_seconds > 0 ? seconds / times.step_seconds : 0;
}

}  // namespace

BenchResult run_bench(const BenchOptions& options) {
    ATOLL_CHECK(options.steps >= 1, "{} steps", options.steps);
    IslandOptions island_options = options.island;
    island_options.measure_memory = true;
    Island island(island_options);
    island.initialise(options.seed);
    const RandomStream random(options.seed, "bench tokens");
    const double learning_rate = island_options.optim.lr;

    std::vector<double> peaks = {measure_matmul_peak(island_options.threads, island_options.dtype)};
    fill_with_random_tokens(island, random, 0);
    island.step(learning_rate);
    island.reset_times();
    BenchResult result;
    result.steps = options.steps;
    for (std::int64_t step = 1; step <= options.steps; ++step) {
        fill_with_random_tokens(island, random, step);
        const StepResult done = island.step(learning_rate);
        result.step_seconds.push_back(done.seconds);
        result.final_loss = done.mean_loss();
        if (step == options.steps / 2) {
            peaks.push_back(measure_matmul_peak(island_options.threads, island_options.dtype));
        }
    }
    peaks.push_back(measure_matmul_peak(island_options.threads, island_options.dtype));

    const StepTimes times = island.times();
    const double step_seconds = median(result.step_seconds);
    result.tokens_per_step = island_options.batch.block_tokens();
    result.tokens_per_second = static_cast<double>(result.tokens_per_step) / step_seconds;
    result.best_tokens_per_second =
        static_cast<double>(result.tokens_per_step) / std::ranges::min(result.step_seconds);
    result.flops_per_second = island.flops_per_step() / step_seconds;
    result.matmul_peak_flops_per_second = median(peaks);
    result.model_flops_utilization = result.flops_per_second / result.matmul_peak_flops_per_second;
    result.forward_share = share(times, times.seconds_of(StepShare::forward));
    result.backward_share = share(times, times.seconds_of(StepShare::backward));
    result.optimizer_share = share(times, times.seconds_of(StepShare::optimizer));
    result.communication_share = share(times, times.seconds_of(StepShare::communication));
    for (const auto& [kind, spent] : times.kind_seconds) result.kind_share[kind] = share(times, spent);
    result.peak_bytes_predicted = island.predicted_bytes();
    result.peak_bytes_measured = island.measured_bytes();
    result.allocations_in_steps = island.allocations().count;
    return result;
}

}  // namespace atl
