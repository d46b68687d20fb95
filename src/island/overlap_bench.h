// Overlap bench: how much of its communication an island of several ranks hides behind computation. The same steps on
// the same tokens without overlap, with barriers and without them, turn and turn about, beside what the virtual executor
// predicts from the island's profile (island/op_profiler.h).
//
// Without overlap means one op at a time, and on one pipeline stage one micro-batch after the other too.
// Collective: every rank calls it; the gateway gets the result. All ranks share one machine's clock.
// Memory: one island while profiling, then three. Cost: the profile, and 1 + steps steps in each mode.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "island/op_profiler.h"
#include "island/plan_replay.h"
#include "program/gantt.h"

namespace atl {

struct OverlapBenchOptions {
    IslandOptions island;
    std::int64_t steps = 5;
    std::uint64_t seed = 1;
    std::string links;                   // what joins the ranks, for the profile's fingerprint
    std::filesystem::path profile_file;  // empty: measure, and keep nothing
    bool replays = false;      // the fastest of the best few plans when tried (island/plan_replay.h)
    bool ingredients = false;  // also measure what each ingredient of the planner gives
};

struct ModeFigures {
    ExecutionMode mode = ExecutionMode::serial;
    std::vector<double> step_seconds;  // from the first rank's start to the last one's end
    double median_seconds = 0;
    // From what ops took alone in the serial steps of the same turns, and how much they slow each other down by the
    // profile: a machine's speed wanders within minutes, and this is off by the model's error alone.
    double predicted_seconds = 0;
    double profile_predicted_seconds = 0;  // from the profile's times, which the plan was made from
    double link_cpu_seconds = 0;  // of a step, of the rank whose threads beside the compute one took most
    std::int64_t peak_bytes_predicted = 0;  // of the rank with the highest
    std::int64_t peak_bytes_measured = 0;
};

// A step by a plan with some of the planner's ingredients (program/planner_ingredients.h).
struct IngredientFigures {
    std::string name;
    double predicted_seconds = 0;
    double median_seconds = 0;
};

struct OverlapBenchResult {
    std::array<ModeFigures, 3> modes;  // serial, barrier, event
    // In serial mode: of the rank with most of it, but for waiting, which is of ranks for the last of them to come to
    // what they do together, on average.
    double communication_seconds = 0;
    double compute_seconds = 0;
    double waiting_seconds = 0;
    double bound = 1;       // speedup if a step took no longer than the busiest rank computes or communicates
    double attainable = 1;  // island/attainable_speedup.h
    double effectiveness = 0;         // of overlap, as profiled
    std::int64_t layer_bytes = 0;     // that a layer's forward leaves for its backward, of the rank with most
    bool gradients_bit_equal = true;  // in all modes, after every step
    bool parameters_bit_equal = false;  // after all of them
    std::int64_t tokens_per_step = 0;
    double final_loss = 0;
    std::vector<TriedPlan> tried;                // plans, the serial step first; empty: none was
    std::vector<IngredientFigures> ingredients;  // one after another; empty: not asked for
    std::string plan;                            // what the planner says of strands; empty: it was not asked
    std::string why_not_interleaved;  // empty: two strands were interleaved, or the schedule has no strands
    FoundProfile profile;
    std::vector<Program> programs;    // [rank], of event mode
    std::vector<StepTiming> timings;  // of event mode: planned, and measured in the step of middle length

    const ModeFigures& of(ExecutionMode mode) const;
};

std::optional<OverlapBenchResult> run_overlap_bench(const OverlapBenchOptions& options,
                                                    const IslandLinks& links, FileSystem& files);

}  // namespace atl
