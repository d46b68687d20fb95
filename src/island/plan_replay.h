// Plan replay: the last word on a strand plan: the best few plans of a profile, and the serial step, each run for real on
// the ranks and links at hand, and the fastest taken.
//
// A step counts for its slowest rank. After one untimed turn the candidates take a step each, turn and turn about, and the
// median counts; kReplaySeconds bound the turns, and one is always taken. The serial step is taken where none is faster.
// Collective: every rank calls it with equal plans and gets the same. Memory: an island; two if there are halves of
// micro-batches. Cost: about twice kReplaySeconds at most, unless one turn takes longer.
#pragma once

#include <vector>

#include "island/island.h"
#include "program/strand_plan.h"

namespace atl {

struct TriedPlan {
    StrandPlan plan;
    double median_seconds = 0;  // of a step

    double predicted_seconds() const {
        return plan.interleaves ? plan.predicted.event_seconds : plan.predicted.serial_seconds;
    }
};

// [plan]: as given, the serial plan first.
std::vector<TriedPlan> replay_plans(const IslandOptions& options, const IslandLinks& links,
                                    const std::vector<StrandPlan>& plans);

// The fastest one, or a serial plan where none gains kLeastGain; its reason is what they took.
StrandPlan fastest_plan(const std::vector<TriedPlan>& tried);

}  // namespace atl
