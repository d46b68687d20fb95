// Profiler: measures an island's OpProfile on the ranks and links at hand.
//
// Alone: whole steps in serial mode, in which every op runs by itself with the caches as training leaves them. The
// first is not counted; more follow until every op has kLeastSamples, or kMostSteps are done. Samples of one op are put
// together over layers, micro-batches and ranks; a collective's is one for all ranks, from their average arrival to its
// end on all of them. Where a step's one micro-batch may be planned as two halves, the ops of those are measured too.
// In pairs: a collective over and over on the thread of its link, first with nothing else and then with a compute op
// over and over on the compute thread; how much longer each takes is its slowdown. The largest ops of their families
// stand for them. All ranks measure together; a collective's slowdown is the worst rank's, a compute op's the middle one's.
// Collective: every rank calls it and gets the same profile. Memory: one island. Cost: kMostSteps steps at most, and
// some tenths of a second for each pair.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "island/island_options.h"
#include "island/rank_times.h"
#include "program/op_profile.h"

namespace atl {

struct ProfilerOptions {
    IslandOptions island;
    std::uint64_t seed = 1;
    std::string links;  // for the fingerprint: what joins the ranks
};

OpProfile measure_op_profile(const ProfilerOptions& options, const IslandLinks& links);

// What ops took in serial steps of these programs, for a profile. Not collective.
std::map<OpKey, OpTiming> timings_of_serial_steps(const std::vector<Program>& programs,
                                                  const std::vector<StepTimesOfRanks>& steps);

// What a profile of this island on this machine is for.
ProfileFingerprint fingerprint_of(const ProfilerOptions& options);

// From the file if it holds one with this fingerprint, else measured and, by the gateway, written there. An empty path
// means no file. Collective.
struct FoundProfile {
    OpProfile profile;
    bool measured = false;
    std::string why;  // it was measured: no file, or how the file's differs
};
FoundProfile find_op_profile(const ProfilerOptions& options, const IslandLinks& links,
                             const std::filesystem::path& file, FileSystem& files);

// How well what a link carries hides behind matrix products, as profiled: 1 = wholly, 0 = not at all (the e of
// program/overlap_model.h for two ops that take equally long).
double overlap_effectiveness(const std::vector<PairSlowdown>& slowdowns);

// One line for each op whose quartile range is above 15 % of its median, the longest first: what follows from its time is
// uncertain.
std::vector<std::string> uncertain_ops(const OpProfile& profile);

}  // namespace atl
