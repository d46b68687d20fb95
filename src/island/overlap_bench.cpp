#include "island/overlap_bench.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/check.h"
#include "core/processor_time.h"
#include "core/statistics.h"
#include "island/attainable_speedup.h"
#include "island/island.h"
#include "island/island_programs.h"
#include "island/random_tokens.h"
#include "island/rank_times.h"
#include "program/virtual_executor.h"

namespace atl {
namespace {

constexpr std::array kModes = {ExecutionMode::serial, ExecutionMode::barrier, ExecutionMode::event};

// A mode's island, and what it did.
struct Candidate {
    std::unique_ptr<Island> island;
    std::vector<StepTimesOfRanks> steps;
    double link_cpu_seconds = 0;
};

class OverlapBench {
  public:
    OverlapBench(const OverlapBenchOptions& options, const IslandLinks& links, FileSystem& files)
        : options_(options), links_(links), timeout_(options.island.collective_timeout) {
        result_.profile = find_op_profile(
            {.island = options.island, .seed = options.seed, .links = options.links}, links,
            options.profile_file, files);
        if (options.island.schedule == ScheduleKind::strands && options.plans) plan();
        for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
            candidates_[mode].island = std::make_unique<Island>(options_in(kModes[mode]), links);
            candidates_[mode].island->initialise(options.seed);
        }
    }

    std::optional<OverlapBenchResult> run() {
        take_steps();
        std::set<std::string> hashes;
        for (const Candidate& candidate : candidates_)
            hashes.insert(candidate.island->parameters_blake2b());
        result_.parameters_bit_equal = hashes.size() == 1;
        for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
            const Candidate& candidate = candidates_[mode];
            ModeFigures& figures = result_.modes[mode];
            figures.mode = kModes[mode];
            figures.peak_bytes_predicted = static_cast<std::int64_t>(
                largest(static_cast<double>(candidate.island->predicted_bytes())));
            figures.peak_bytes_measured =
                static_cast<std::int64_t>(largest(static_cast<double>(candidate.island->measured_bytes())));
            figures.link_cpu_seconds =
                largest(candidate.link_cpu_seconds) / static_cast<double>(options_.steps);
        }
        if (links_.rank != Rank(0)) return std::nullopt;
        for (std::size_t mode = 0; mode < kModes.size(); ++mode) evaluate(mode);
        return std::move(result_);
    }

  private:
    // Every rank plans the same from the same profile; should they differ all the same, they can't run together.
    void plan() {
        auto plan = plan_island(options_.island, result_.profile.profile);
        const auto hashes = links_.world->all_gather(plan.hash(), timeout_);
        if (std::ranges::any_of(hashes, [&](const std::string& hash) { return hash != hashes.front(); }))
            plan = serial_plan("ranks came to different plans");
        result_.plan = plan.reason;
        plan_ = std::make_shared<const StrandPlan>(std::move(plan));
    }

    IslandOptions options_in(ExecutionMode mode) const {
        IslandOptions island = options_.island;
        island.mode = mode;
        island.measure_memory = true;
        island.plan = plan_;
        if (mode == ExecutionMode::serial && island.parallel.pp == 1) island.schedule = ScheduleKind::serial;
        return island;
    }

    void take_steps() {
        const RandomStream random(options_.seed, "bench tokens");
        for (std::int64_t step = 0; step <= options_.steps; ++step) {  // the first is not timed
            std::set<std::string> gradients;
            for (Candidate& candidate : candidates_) {
                fill_with_random_tokens(*candidate.island, random, step);
                const double cpu_before = processor_seconds_beside_this_thread();
                result_.final_loss = candidate.island->step(options_.island.optim.lr).mean_loss();
                const double cpu = processor_seconds_beside_this_thread() - cpu_before;
                gradients.insert(candidate.island->gradients_blake2b());
                if (step == 0) continue;
                candidate.link_cpu_seconds += cpu;
                candidate.steps.push_back(gather_step_times(*candidate.island, links_, timeout_));
            }
            const double kinds = largest(static_cast<double>(gradients.size()));
            result_.gradients_bit_equal = result_.gradients_bit_equal && kinds == 1;
        }
    }

    double largest(double value) const {
        links_.world->all_reduce_max(view_of(std::span(&value, 1)), timeout_);
        return value;
    }

    void evaluate(std::size_t mode) {
        ModeFigures& figures = result_.modes[mode];
        const Candidate& candidate = candidates_[mode];
        for (const auto& step : candidate.steps) figures.step_seconds.push_back(end_of(step));
        figures.median_seconds = median(figures.step_seconds);
        std::vector<Program> programs;
        std::vector<std::vector<double>> seconds_of_ops;
        for (std::int32_t rank = 0; rank < options_.island.parallel.ranks(); ++rank) {
            programs.push_back(training_program(candidate.island->options(), Rank(rank)));
            seconds_of_ops.push_back(op_seconds(programs.back(), result_.profile.profile));
        }
        const VirtualRun run = execute_virtually(programs, seconds_of_ops, kModes[mode],
                                                 OverlapModel(result_.profile.profile.slowdowns));
        figures.predicted_seconds = run.step_seconds;
        if (kModes[mode] == ExecutionMode::serial) evaluate_serial(programs, candidate);
        if (kModes[mode] != ExecutionMode::event) return;
        result_.timings = {{"planned", run.ops}, {"measured", candidate.steps.back()}};
        result_.why_not_interleaved = why_not_interleaved(programs.front());
        result_.programs = std::move(programs);
    }

    // What could be gained.
    void evaluate_serial(const std::vector<Program>& programs, const Candidate& candidate) {
        const auto graph = make_execution_graph(programs);
        std::vector<std::vector<std::vector<double>>> steps;  // [step][rank][op]
        for (const auto& step : candidate.steps) steps.push_back(durations(programs, graph, step));
        SerialStep longest{.seconds = result_.of(ExecutionMode::serial).median_seconds,
                           .micro_batches = candidate.island->local_micro_batches()};
        for (std::size_t rank = 0; rank < programs.size(); ++rank) {
            double compute = 0;
            double communication = 0;
            SerialStep mine = longest;
            mine.layer_seconds = mine.layer_communication_seconds = 0;
            for (const Op& op : programs[rank].ops) {
                if (op.resource == Resource::send) continue;
                std::vector<double> taken;
                for (const auto& step : steps) taken.push_back(step[rank][static_cast<std::size_t>(op.id.value())]);
                const double seconds = median(std::move(taken));
                const bool computes = op.resource == Resource::compute;
                (computes ? compute : communication) += seconds;
                if (op.layer < 0 || op.micro_batch < 0) continue;
                mine.layer_seconds += seconds;
                if (!computes) mine.layer_communication_seconds += seconds;
            }
            if (communication <= result_.communication_seconds) continue;
            result_.communication_seconds = communication;
            result_.compute_seconds = compute;
            longest = mine;
        }
        result_.tokens_per_step = options_.island.batch.block_tokens();
        result_.effectiveness = overlap_effectiveness(result_.profile.profile.slowdowns);
        result_.bound = perfect_overlap_speedup(result_.compute_seconds, result_.communication_seconds);
        result_.attainable = attainable_speedup(longest, result_.effectiveness);
    }

    std::string why_not_interleaved(const Program& program) const {
        if (options_.island.schedule != ScheduleKind::strands) return "";
        if (plan_ && !plan_->interleaves) return plan_->reason;
        if (std::ranges::any_of(program.ops, [](const Op& op) { return op.strand > 0; })) return "";
        return fmt::format("a rank has {} micro-batch a step, and two strands need two",
                           candidates_.front().island->local_micro_batches());
    }

    const OverlapBenchOptions& options_;
    const IslandLinks& links_;
    Milliseconds timeout_;
    std::shared_ptr<const StrandPlan> plan_;  // null: strands take turns
    std::array<Candidate, kModes.size()> candidates_;
    OverlapBenchResult result_;
};

}  // namespace

const ModeFigures& OverlapBenchResult::of(ExecutionMode mode) const {
    return modes[static_cast<std::size_t>(std::ranges::find(kModes, mode) - kModes.begin())];
}

std::optional<OverlapBenchResult> run_overlap_bench(const OverlapBenchOptions& options,
                                                    const IslandLinks& links, FileSystem& files) {
    ATOLL_CHECK(options.island.parallel.ranks() > 1, "an island of one rank has nothing to hide");
    return OverlapBench(options, links, files).run();
}

}  // namespace atl
