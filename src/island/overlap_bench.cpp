#include "island/overlap_bench.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/check.h"
#include "core/statistics.h"
#include "island/island.h"
#include "island/island_programs.h"
#include "island/random_tokens.h"
#include "program/execution_graph.h"
#include "program/virtual_executor.h"

namespace atl {
namespace {

constexpr std::array kModes = {ExecutionMode::serial, ExecutionMode::barrier, ExecutionMode::event};

// All ranks' times of one step, in seconds from the first rank's start.
using StepTimesOfRanks = std::vector<std::vector<OpTime>>;

double end_of(const StepTimesOfRanks& step) {
    double end = 0;
    for (const auto& rank : step)
        for (const OpTime& op : rank) end = std::max(end, op.end_seconds);
    return end;
}

StepTimesOfRanks gather_times(const Island& island, const IslandLinks& links, Milliseconds timeout) {
    std::vector<double> mine{seconds(island.step_begin().time_since_epoch())};
    for (const OpTime& op : island.op_times()) mine.insert(mine.end(), {op.start_seconds, op.end_seconds});
    const auto texts = links.world->all_gather(
        {reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double)}, timeout);
    std::vector<std::vector<double>> all;
    for (const std::string& text : texts) {
        std::memcpy(all.emplace_back(text.size() / sizeof(double)).data(), text.data(), text.size());
    }
    const double first = std::ranges::min(all, {}, [](const auto& rank) { return rank.front(); }).front();
    StepTimesOfRanks step;
    for (const auto& rank : all) {
        auto& ops = step.emplace_back();
        const double begin = rank.front() - first;
        for (std::size_t i = 1; i + 1 < rank.size(); i += 2)
            ops.push_back({begin + rank[i], begin + rank[i + 1]});
    }
    return step;
}

// How long each op took by itself: the median over serial steps.
std::vector<std::vector<double>> solo_seconds(const std::vector<Program>& programs,
                                              const std::vector<StepTimesOfRanks>& steps) {
    std::vector<std::vector<double>> solo;
    for (const Program& program : programs) solo.emplace_back(program.ops.size(), 0.0);
    const auto graph = make_execution_graph(programs);
    for (const ExecutionNode& node : graph.nodes) {
        if (node.kind == NodeKind::post || node.kind == NodeKind::end) continue;
        std::vector<double> taken;
        for (const auto& step : steps) {
            double start = 0;  // the last to come
            double end = 0;
            for (const auto& [program, op] : node.ops) {
                const OpTime& time = step[program][static_cast<std::size_t>(op.value())];
                start = std::max(start, time.start_seconds);
                // A send may be over late: nobody waits for it before its memory is needed again.
                if (programs[program].op(op).kind != OpKind::send) end = std::max(end, time.end_seconds);
            }
            taken.push_back(std::max(end - start, 0.0));
        }
        const double middle = median(std::move(taken));
        for (const auto& [program, op] : node.ops)
            solo[program][static_cast<std::size_t>(op.value())] = middle;
    }
    return solo;
}

double communication_seconds(const std::vector<Program>& programs,
                             const std::vector<std::vector<double>>& solo) {
    double longest = 0;
    for (std::size_t i = 0; i < programs.size(); ++i) {
        double sum = 0;
        for (const Op& op : programs[i].ops)
            if (op.resource != Resource::compute && op.resource != Resource::send)
                sum += solo[i][static_cast<std::size_t>(op.id.value())];
        longest = std::max(longest, sum);
    }
    return longest;
}

// The largest of all ranks' numbers.
std::int64_t largest(std::int64_t value, const IslandLinks& links, Milliseconds timeout) {
    double number = static_cast<double>(value);
    links.world->all_reduce_max(view_of(std::span(&number, 1)), timeout);
    return static_cast<std::int64_t>(number);
}

std::vector<std::unique_ptr<Island>> make_islands(const OverlapBenchOptions& options,
                                                  const IslandLinks& links) {
    std::vector<std::unique_ptr<Island>> islands;
    for (const ExecutionMode mode : kModes) {
        IslandOptions island = options.island;
        island.mode = mode;
        island.measure_memory = true;
        islands.push_back(std::make_unique<Island>(island, links));
        islands.back()->initialise(options.seed);
    }
    return islands;
}

}  // namespace

const ModeFigures& OverlapBenchResult::of(ExecutionMode mode) const {
    return *std::ranges::find(modes, mode, &ModeFigures::mode);
}

std::optional<OverlapBenchResult> run_overlap_bench(const OverlapBenchOptions& options,
                                                    const IslandLinks& links) {
    ATOLL_CHECK(options.island.parallel.ranks() > 1, "an island of one rank has nothing to hide");
    const Milliseconds timeout = options.island.collective_timeout;
    const auto islands = make_islands(options, links);
    const RandomStream random(options.seed, "bench tokens");
    std::array<std::vector<StepTimesOfRanks>, kModes.size()> steps;
    OverlapBenchResult result;
    for (std::int64_t step = 0; step <= options.steps; ++step)  // the first is not timed
        for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
            fill_with_random_tokens(*islands[mode], random, step);
            result.final_loss = islands[mode]->step(options.island.optim.lr).mean_loss();
            if (step > 0) steps[mode].push_back(gather_times(*islands[mode], links, timeout));
        }
    std::set<std::string> hashes;
    for (const auto& island : islands) hashes.insert(island->parameters_blake2b());
    result.parameters_bit_equal = hashes.size() == 1;
    result.peak_bytes_predicted = largest(islands.back()->predicted_bytes(), links, timeout);
    result.peak_bytes_measured = largest(islands.back()->measured_bytes(), links, timeout);
    if (links.rank != Rank(0)) return std::nullopt;

    for (std::int32_t rank = 0; rank < options.island.parallel.ranks(); ++rank)
        result.programs.push_back(training_program(options.island, Rank(rank)));
    const auto solo = solo_seconds(result.programs, steps[0]);
    result.communication_seconds = communication_seconds(result.programs, solo);
    result.tokens_per_step = options.island.batch.block_tokens();
    for (std::size_t mode = 0; mode < kModes.size(); ++mode) {
        ModeFigures& figures = result.modes[mode];
        figures.mode = kModes[mode];
        for (const auto& step : steps[mode]) figures.step_seconds.push_back(end_of(step));
        figures.median_seconds = median(figures.step_seconds);
        const VirtualRun run = execute_virtually(result.programs, solo, kModes[mode]);
        figures.predicted_seconds = run.step_seconds;
        if (kModes[mode] == ExecutionMode::event)
            result.timings = {{"planned", run.ops}, {"measured", steps[mode].back()}};
    }
    return result;
}

}  // namespace atl
