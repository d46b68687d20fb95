// StrandPlanner: by which plan the strands of a run's island are interleaved: at the start, and again when steps drift
// from what is expected of them (program/plan_drift.h).
//
// At the start the plan is the file that the options name, or made from the profile that they name, or, where they ask for
// measurements or what they name is stale, the one that was kept, so that a run that goes on runs as before, or a
// measured one. A kept plan knows what its steps took, so that a run that goes on where they take longer or less plans
// again. The gateway decides which, and all ranks agree on the plan (island/strand_planning.h). Planning again always
// measures. Where nothing is to be planned all of this does nothing. The gateway keeps the plan, and the profile that it
// measured, in the files given.
// Threads: one caller. Collective: plan_at_start and plan_again. Errors: UserError, CommError.
#pragma once

#include <optional>
#include <string>

#include "core/file_system.h"
#include "core/log.h"
#include "island/island.h"
#include "program/plan_drift.h"

namespace atl {

class StrandPlanner {
  public:
    // Where the gateway keeps them.
    struct Kept {
        std::filesystem::path plan;
        std::filesystem::path profile;
    };
    // What the links point to, and the file system, outlive it.
    StrandPlanner(const IslandLinks& links, FileSystem& files, Kept kept, Log log);

    // Puts the plan into the options.
    void plan_at_start(IslandOptions& island);
    // On the gateway, for every step: why to plan again; empty to go on.
    std::string add_step(double seconds);
    // Between the same two steps on all ranks. Whether micro-batches are halved stays as it is, and so do the bits.
    void plan_again(Island& island);

  private:
    bool is_gateway() const { return links_.rank == Rank(0); }
    // The gateway's, unless one must be measured.
    std::optional<StrandPlan> known_plan(const IslandOptions& island) const;
    StrandPlan measure(const IslandOptions& island) const;
    void keep(const StrandPlan& plan);

    const IslandLinks links_;
    FileSystem& files_;
    Kept kept_;
    bool is_halved_ = false;
    StrandPlan plan_;  // as it is kept
    Log log_;
    std::optional<PlanDrift> drift_;  // empty: there is no plan to drift from
};

}  // namespace atl
