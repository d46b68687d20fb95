#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "island/bench.h"
#include "metrics/progress.h"
#include "model/model_shape.h"
#include "worker/jobs.h"

namespace atl {
namespace {

nlohmann::ordered_json to_json(const BenchResult& result) {
    nlohmann::ordered_json kinds;
    for (const auto& [kind, share] : result.kind_share) kinds[std::string(name(kind))] = share;
    return {{"steps", result.steps},
            {"tokens_per_step", result.tokens_per_step},
            {"tokens_per_second", result.tokens_per_second},
            {"best_tokens_per_second", result.best_tokens_per_second},
            {"step_seconds", result.step_seconds},
            {"flops_per_second", result.flops_per_second},
            {"matmul_peak_flops_per_second", result.matmul_peak_flops_per_second},
            {"model_flops_utilization", result.model_flops_utilization},
            {"forward_share", result.forward_share},
            {"backward_share", result.backward_share},
            {"optimizer_share", result.optimizer_share},
            {"communication_share", result.communication_share},
            {"kind_share", kinds},
            {"peak_bytes_predicted", result.peak_bytes_predicted},
            {"peak_bytes_measured", result.peak_bytes_measured},
            {"allocations_in_steps", result.allocations_in_steps},
            {"peak_rss_bytes", peak_rss_bytes()},
            {"final_loss", result.final_loss}};
}

void print_table(const BenchResult& result) {
    fmt::print("tokens/s            {:.0f} (best {:.0f}), {} steps of {} tokens\n", result.tokens_per_second,
               result.best_tokens_per_second, result.steps, result.tokens_per_step);
    fmt::print("model flops         {:.1f} GFLOP/s, {:.1f} % of the matmul peak {:.1f}\n",
               result.flops_per_second * 1e-9, 100 * result.model_flops_utilization,
               result.matmul_peak_flops_per_second * 1e-9);
    fmt::print(
        "step                forward {:.1f} %, backward {:.1f} %, optimizer {:.1f} %, communication {:.1f} "
        "%\n",
        100 * result.forward_share, 100 * result.backward_share, 100 * result.optimizer_share,
        100 * result.communication_share);
    fmt::print("memory              {} predicted, {} measured, {} allocations in steps\n",
               human_bytes(static_cast<double>(result.peak_bytes_predicted)),
               human_bytes(static_cast<double>(result.peak_bytes_measured)), result.allocations_in_steps);
    for (const auto& [kind, share] : result.kind_share)
        fmt::print("  {:<24} {:5.1f} %\n", name(kind), 100 * share);
}

}  // namespace

int run_bench_job(const BenchJob& job, FileSystem& files) {
    const RunConfig& config = job.config;
    if (job.ranks > 1) return run_overlap_bench_job(job, files);
    const BenchResult result =
        run_bench({.island = island_options(config, config.sites.front().island, job.threads),
                   .steps = job.steps,
                   .seed = static_cast<std::uint64_t>(config.run.seed)});
    if (job.json)
        fmt::print("{}\n", to_json(result).dump(2));
    else
        print_table(result);
    return 0;
}

}  // namespace atl
