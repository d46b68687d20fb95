#include "island/op_profiler.h"

#include <fmt/chrono.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>

#include "core/error.h"
#include "island/island.h"
#include "island/island_programs.h"
#include "island/pair_profiler.h"
#include "island/random_tokens.h"
#include "island/rank_times.h"
#include "island/strand_planning.h"

namespace atl {
namespace {

constexpr std::size_t kLeastSamples = 20;
constexpr std::size_t kLeastSteps = 3;
constexpr int kMostSteps = 5;
constexpr double kMostSpread = 0.15;

using Samples = std::map<OpKey, std::vector<std::vector<double>>>;  // [op][step]

bool has_enough(const Samples& samples) {
    return std::ranges::all_of(samples, [](const auto& entry) {
        std::size_t count = 0;
        for (const auto& step : entry.second) count += step.size();
        return entry.second.size() >= kLeastSteps && count >= kLeastSamples;
    });
}

// Of one step. A collective's ranks all say the same: one of them is a sample.
void add_samples(Samples& samples, const std::vector<Program>& programs, const ExecutionGraph& graph,
                 const StepTimesOfRanks& step) {
    const auto taken = durations(programs, graph, step, Arrival::average);
    std::map<OpKey, std::vector<double>> here;
    for (const ExecutionNode& node : graph.nodes) {
        if (node.kind == NodeKind::post || node.kind == NodeKind::end) continue;
        std::vector<OpKey> known;
        for (const auto& [program, op] : node.ops) {
            const OpKey key = key_of(programs[program], programs[program].op(op));
            if (std::ranges::find(known, key) != known.end()) continue;
            known.push_back(key);
            here[key].push_back(taken[program][static_cast<std::size_t>(op.value())]);
        }
    }
    for (auto& [key, seconds] : here) samples[key].push_back(std::move(seconds));
}

Samples measure_alone(const ProfilerOptions& options, const IslandLinks& links) {
    IslandOptions serial = options.island;
    serial.mode = ExecutionMode::serial;
    Island island(serial, links);
    island.initialise(options.seed);
    std::vector<Program> programs;
    for (std::int32_t rank = 0; rank < serial.parallel.ranks(); ++rank)
        programs.push_back(training_program(serial, Rank(rank)));
    const auto graph = make_execution_graph(programs);
    const RandomStream random(options.seed, "profile tokens");
    Samples samples;
    for (int step = 0; step <= kMostSteps; ++step) {
        fill_with_random_tokens(island, random, step);
        island.step(serial.optim.lr);
        if (step == 0) continue;
        const auto times = gather_step_times(island, links, serial.collective_timeout);
        add_samples(samples, programs, graph, times);
        if (has_enough(samples)) break;
    }
    return samples;
}

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::map<OpKey, OpTiming> timings_of(const Samples& samples) {
    std::map<OpKey, OpTiming> timings;
    for (const auto& [key, steps] : samples) timings[key] = timing_of(steps);
    return timings;
}

}  // namespace

std::map<OpKey, OpTiming> timings_of_serial_steps(const std::vector<Program>& programs,
                                                  const std::vector<StepTimesOfRanks>& steps) {
    const auto graph = make_execution_graph(programs);
    Samples samples;
    for (const StepTimesOfRanks& step : steps) add_samples(samples, programs, graph, step);
    return timings_of(samples);
}

ProfileFingerprint fingerprint_of(const ProfilerOptions& options) {
    ProfileFingerprint fingerprint = step_fingerprint(options.island);
    fingerprint.links = options.links;
    return fingerprint;
}

OpProfile measure_op_profile(const ProfilerOptions& options, const IslandLinks& links) {
    OpProfile profile;
    profile.fingerprint = fingerprint_of(options);
    profile.provenance = {.host = host_name(),
                          .date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
                          .ranks = options.island.parallel.ranks()};
    Samples samples = measure_alone(options, links);
    if (may_halve(options.island)) {  // what a plan in halves is made from
        ProfilerOptions halves = options;
        halves.island = with_halves(options.island);
        samples.merge(measure_alone(halves, links));
    }
    profile.ops = timings_of(samples);
    profile.slowdowns = measure_pairs(options.island, links);
    return profile;
}

FoundProfile find_op_profile(const ProfilerOptions& options, const IslandLinks& links,
                             const std::filesystem::path& file, FileSystem& files) {
    // The gateway's file, or an empty text, is everybody's.
    std::string text;
    if (links.rank == Rank(0) && !file.empty() && files.exists(file)) text = files.read_text(file);
    text = links.world->all_gather(text, options.island.collective_timeout).front();
    FoundProfile found{.profile = {}, .measured = true, .why = "no profile was kept"};
    if (!text.empty()) {
        found.profile = op_profile_from_json(text, file.string());
        found.why = difference(fingerprint_of(options), found.profile.fingerprint);
        found.measured = !found.why.empty();
    }
    if (!found.measured) return found;
    found.profile = measure_op_profile(options, links);
    if (links.rank == Rank(0) && !file.empty()) files.write_text_atomically(file, to_json(found.profile));
    return found;
}

double overlap_effectiveness(const std::vector<PairSlowdown>& slowdowns) {
    double sum = 0;
    int pairs = 0;
    for (const PairSlowdown& pair : slowdowns) {
        if (pair.first.family != OpFamily::matmul || pair.second.resource == Resource::compute) continue;
        const auto [least, most] = std::minmax(pair.first_slowdown, pair.second_slowdown);
        sum += 1 - least + least / most;
        ++pairs;
    }
    return pairs > 0 ? std::clamp(sum / pairs, 0.0, 1.0) : 1;
}

std::vector<std::string> uncertain_ops(const OpProfile& profile) {
    std::vector<std::pair<double, std::string>> ops;
    for (const auto& [key, timing] : profile.ops) {
        if (timing.quartile_range_seconds <= kMostSpread * timing.median_seconds) continue;
        ops.emplace_back(timing.median_seconds,
                         fmt::format("{} {}: {:.3g} ms, half of the samples within {:.0f} %", name(key.kind),
                                     key.shapes, 1e3 * timing.median_seconds,
                                     100 * timing.quartile_range_seconds / timing.median_seconds));
    }
    std::ranges::sort(ops, std::greater{});
    std::vector<std::string> lines;
    for (auto& [seconds, line] : ops) lines.push_back(std::move(line));
    return lines;
}

}  // namespace atl
