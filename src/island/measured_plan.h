// A strand plan from measurements on the ranks and links at hand: their profile (island/op_profiler.h), the best few
// plans that it gives, and the fastest of them when run for real (island/plan_replay.h).
//
// Collective: every rank calls it and gets the same plan. Errors: UserError for a profile file that is none, CommError.
// Memory: one island while profiling, another while replaying. Cost: the profile and the replay.
#pragma once

#include "island/op_profiler.h"
#include "island/plan_replay.h"

namespace atl {

struct MeasuredPlan {
    StrandPlan plan;
    FoundProfile profile;
    std::vector<TriedPlan> tried;  // empty: no plan was predicted to gain enough
};

// The profile is kept in, and taken from, this file if it holds; empty: measured afresh, and not kept.
MeasuredPlan measure_plan(const ProfilerOptions& options, const IslandLinks& links,
                          const std::filesystem::path& profile_file, FileSystem& files);

}  // namespace atl
