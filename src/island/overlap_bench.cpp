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
#include "island/measured_plan.h"
#include "island/random_tokens.h"
#include "island/rank_times.h"
#include "island/strand_planning.h"
#include "program/planner_ingredients.h"
#include "program/saved_activations.h"
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

// Neither one that others on the machine disturbed, nor a lucky one.
const StepTimesOfRanks& middle_step(const std::vector<StepTimesOfRanks>& steps) {
    std::vector<const StepTimesOfRanks*> by_length;
    for (const StepTimesOfRanks& step : steps) by_length.push_back(&step);
    const auto middle = by_length.begin() + std::ssize(by_length) / 2;
    std::ranges::nth_element(by_length, middle, {}, [](const auto* step) { return end_of(*step); });
    return **middle;
}

class OverlapBench {
  public:
    OverlapBench(const OverlapBenchOptions& options, const IslandLinks& links, FileSystem& files)
        : options_(options), links_(links), timeout_(options.island.collective_timeout) {
        plan({.island = options.island, .seed = options.seed, .links = options.links}, files);
        for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
            candidates_[mode].island = std::make_unique<Island>(options_in(kModes[mode]), links);
            candidates_[mode].island->initialise(options.seed);
        }
    }

    std::optional<OverlapBenchResult> run() {
        take_steps();
        std::set<std::string> hashes;
        for (const Candidate& candidate : candidates_) {
            const std::string hash = candidate.island->parameters_blake2b();
            if (is_cut_as_planned(candidate)) hashes.insert(hash);
        }
        result_.parameters_bit_equal = hashes.size() == 1;
        for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
            const Candidate& candidate = candidates_[mode];
            ModeFigures& figures = result_.modes[mode];
            figures.mode = kModes[mode];
            figures.peak_bytes_predicted =
                static_cast<std::int64_t>(largest(static_cast<double>(candidate.island->predicted_bytes())));
            figures.peak_bytes_measured =
                static_cast<std::int64_t>(largest(static_cast<double>(candidate.island->measured_bytes())));
            figures.link_cpu_seconds =
                largest(candidate.link_cpu_seconds) / static_cast<double>(options_.steps);
        }
        if (options_.ingredients) measure_ingredients();
        if (links_.rank != Rank(0)) return std::nullopt;
        const OpProfile same_turns = profile_of_same_turns();
        for (std::size_t mode = 0; mode < kModes.size(); ++mode) evaluate(mode, same_turns);
        return std::move(result_);
    }

  private:
    // Every rank plans the same from the same profile; should they differ all the same, they can't run together.
    void plan(const ProfilerOptions& profiler, FileSystem& files) {
        const bool plans = plans_strands(options_.island);
        StrandPlan plan;
        if (plans && options_.replays) {
            auto measured = measure_plan(profiler, links_, options_.profile_file, files);
            plan = std::move(measured.plan);
            result_.profile = std::move(measured.profile);
            result_.tried = std::move(measured.tried);
        } else {
            result_.profile = find_op_profile(profiler, links_, options_.profile_file, files);
            if (!plans) return;
            plan = plan_of(options_.island, costs_of(result_.profile.profile));
        }
        const auto hashes = links_.world->all_gather(plan.hash(), timeout_);
        if (std::ranges::any_of(hashes, [&](const std::string& hash) { return hash != hashes.front(); }))
            plan = serial_plan("ranks came to different plans");
        result_.plan = plan.reason;
        plan_ = std::make_shared<const StrandPlan>(std::move(plan));
    }

    IslandOptions options_in(ExecutionMode mode) const {
        IslandOptions island = options_.island;
        const bool is_serial = mode == ExecutionMode::serial && island.parallel.pp == 1;
        if (plan_ && plan_->halves_micro_batches && !is_serial) island = with_halves(std::move(island));
        island.mode = mode;
        island.measure_memory = true;
        island.plan = plan_;
        if (is_serial) island.schedule = ScheduleKind::serial;
        return island;
    }

    // Halves of micro-batches add gradients up in another order than whole ones.
    bool is_cut_as_planned(const Candidate& candidate) const {
        return candidate.island->local_micro_batches() == candidates_.back().island->local_micro_batches();
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
                if (is_cut_as_planned(candidate)) gradients.insert(candidate.island->gradients_blake2b());
                if (step == 0) continue;
                candidate.link_cpu_seconds += cpu;
                candidate.steps.push_back(gather_step_times(*candidate.island, links_, timeout_));
            }
            const double kinds = largest(static_cast<double>(gradients.size()));
            result_.gradients_bit_equal = result_.gradients_bit_equal && kinds == 1;
        }
    }

    // On the islands of their modes, whose own plans have had their turns.
    void measure_ingredients() {
        const auto plans = ingredient_plans(training_steps(options_.island), training_table(options_.island),
                                            costs_of(result_.profile.profile));
        std::vector<std::vector<double>> seconds(plans.size());
        const RandomStream random(options_.seed, "bench tokens");
        for (std::int64_t turn = 0; turn <= options_.steps; ++turn)
            for (std::size_t i = 0; i < plans.size(); ++i) {
                Island& island = *candidate_in(plans[i].mode).island;
                island.set_plan(std::make_shared<const StrandPlan>(plans[i].plan));
                fill_with_random_tokens(island, random, turn);
                island.step(options_.island.optim.lr);
                const auto times = gather_step_times(island, links_, timeout_);
                if (turn > 0) seconds[i].push_back(end_of(times));
            }
        for (std::size_t i = 0; i < plans.size(); ++i)
            result_.ingredients.push_back({plans[i].name, plans[i].predicted_seconds(), median(seconds[i])});
    }
    Candidate& candidate_in(ExecutionMode mode) {
        return candidates_[static_cast<std::size_t>(std::ranges::find(kModes, mode) - kModes.begin())];
    }

    double largest(double value) const {
        links_.world->all_reduce_max(view_of(std::span(&value, 1)), timeout_);
        return value;
    }

    void evaluate(std::size_t mode, const OpProfile& same_turns) {
        ModeFigures& figures = result_.modes[mode];
        const Candidate& candidate = candidates_[mode];
        for (const auto& step : candidate.steps) figures.step_seconds.push_back(end_of(step));
        figures.median_seconds = median(figures.step_seconds);
        std::vector<Program> programs;
        for (std::int32_t rank = 0; rank < options_.island.parallel.ranks(); ++rank)
            programs.push_back(training_program(options_in(kModes[mode]), Rank(rank)));
        const VirtualRun run = predict(programs, kModes[mode], same_turns);
        figures.predicted_seconds = run.step_seconds;
        figures.profile_predicted_seconds =
            predict(programs, kModes[mode], result_.profile.profile).step_seconds;
        if (kModes[mode] == ExecutionMode::serial) evaluate_serial(programs, candidate);
        if (kModes[mode] != ExecutionMode::event) return;
        result_.timings = {{"planned", run.ops}, {"measured", middle_step(candidate.steps)}};
        result_.why_not_interleaved = why_not_interleaved(programs.front());
        result_.programs = std::move(programs);
    }

    static VirtualRun predict(const std::vector<Program>& programs, ExecutionMode mode,
                              const OpProfile& profile) {
        std::vector<std::vector<double>> seconds;
        for (const Program& program : programs) seconds.push_back(op_seconds(program, profile));
        return execute_virtually(programs, seconds, mode, OverlapModel(profile.slowdowns));
    }

    // With what ops took in the serial steps that took turns with the others.
    OpProfile profile_of_same_turns() {
        std::vector<Program> programs;
        for (std::int32_t rank = 0; rank < options_.island.parallel.ranks(); ++rank)
            programs.push_back(training_program(options_in(ExecutionMode::serial), Rank(rank)));
        OpProfile profile = result_.profile.profile;
        const auto& steps = candidate_in(ExecutionMode::serial).steps;
        for (const auto& [key, timing] : timings_of_serial_steps(programs, steps)) profile.ops[key] = timing;
        return profile;
    }

    // What of a serial step goes where, and what could be gained.
    void evaluate_serial(const std::vector<Program>& programs, const Candidate& candidate) {
        const auto graph = make_execution_graph(programs);
        std::vector<SerialAccounts> steps;
        for (const auto& step : candidate.steps) steps.push_back(account_for(programs, graph, step));
        const auto middle = [&](double SerialAccount::*part, std::size_t rank) {
            std::vector<double> values;
            for (const SerialAccounts& step : steps) values.push_back(step[rank].*part);
            return median(std::move(values));
        };
        SerialStep longest{.seconds = result_.of(ExecutionMode::serial).median_seconds,
                           .micro_batches = candidate.island->local_micro_batches()};
        for (std::size_t rank = 0; rank < programs.size(); ++rank) {
            const double communication = middle(&SerialAccount::communication_seconds, rank);
            result_.compute_seconds =
                std::max(result_.compute_seconds, middle(&SerialAccount::compute_seconds, rank));
            result_.waiting_seconds +=
                middle(&SerialAccount::waiting_seconds, rank) / static_cast<double>(programs.size());
            if (communication <= result_.communication_seconds) continue;
            result_.communication_seconds = communication;
            longest.layer_seconds = middle(&SerialAccount::layer_seconds, rank);
            longest.layer_communication_seconds = middle(&SerialAccount::layer_communication_seconds, rank);
        }
        result_.tokens_per_step = options_.island.batch.block_tokens();
        result_.effectiveness = overlap_effectiveness(result_.profile.profile.slowdowns);
        result_.bound = longest.seconds / std::max(result_.compute_seconds, result_.communication_seconds);
        result_.attainable = attainable_speedup(longest, result_.effectiveness);
        result_.layer_bytes = saved_layer_bytes(programs);
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
