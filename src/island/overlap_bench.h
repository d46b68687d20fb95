// Overlap bench: how much of its communication an island of several ranks hides behind computation. The same steps on
// the same tokens in all three execution modes, turn and turn about, beside what the virtual executor predicts from the
// times that ops took one by one.
//
// Prediction: a compute op takes the median of its times in serial mode; a collective, from the last rank's arrival to
// its end; a message, from the later post to its arrival. Ops that overlap are taken not to slow each other down, so
// what a mode falls short of its prediction is what overlapping costs.
// Collective: every rank calls it; the gateway gets the result. All ranks share one machine's clock.
// Memory: three islands. Cost: (1 + steps) steps in each mode.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "island/island_options.h"
#include "program/gantt.h"

namespace atl {

struct OverlapBenchOptions {
    IslandOptions island;
    std::int64_t steps = 5;
    std::uint64_t seed = 1;
};

struct ModeFigures {
    ExecutionMode mode = ExecutionMode::serial;
    std::vector<double> step_seconds;  // from the first rank's start to the last one's end
    double median_seconds = 0;
    double predicted_seconds = 0;
};

struct OverlapBenchResult {
    std::array<ModeFigures, 3> modes;       // serial, barrier, event
    double communication_seconds = 0;       // in serial mode, of the rank that communicates longest
    bool parameters_bit_equal = false;      // in all modes, after all steps
    std::int64_t peak_bytes_predicted = 0;  // of the rank with the highest
    std::int64_t peak_bytes_measured = 0;
    std::int64_t tokens_per_step = 0;
    double final_loss = 0;
    std::vector<Program> programs;    // [rank]
    std::vector<StepTiming> timings;  // of event mode: planned, and measured in the last step

    const ModeFigures& of(ExecutionMode mode) const;
};

std::optional<OverlapBenchResult> run_overlap_bench(const OverlapBenchOptions& options,
                                                    const IslandLinks& links);

}  // namespace atl
