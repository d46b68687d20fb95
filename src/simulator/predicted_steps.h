// Published training steps, predicted: their programs on the virtual executor with their cluster's rates.
//
// From the published serial speed alone comes one factor for each set-up, so that the simulated serial step takes as long
// as the published one: this fixes the share of communication. How much of it hides is one level of the cluster's overlap
// table, fitted on the DHelix column of the *other* rows of the cluster: leave one out. What is simulated:
//   serial        1F1B with communication that blocks (blocking_program.h), as in Megatron-LM
//   intra-batch   the same order, where communication hides behind what the same micro-batch has ready
//   Wavelet+      side_by_side, a barrier behind each segment
//   DHelix        w without barriers. Its released code has them, but a plan found by search; strands taking turns by
//                 segments (program/interleave.h) without barriers come near to such a plan
// Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulator/published_steps.h"

namespace atl {

struct PredictedStep {
    double factor = 1;  // of what the published serial step leaves unknown, against the cluster's rates
    double communication_share = 0;  // of all that a rank does, one thing after another
    // [group] of collectives: its part of the published serial step, hidden or not. "tp", "cp", "ep", "dp".
    std::map<std::string, double> group_shares;
    double overlap_level = 0;  // fitted on the other rows
    double intra_batch = 1;
    double side_by_side = 1;
    double interleaved = 1;
    double mean_of_others =
        1;  // what a guess without a model would say: the mean of the other rows' speed-ups
};
// [row]. Cost: some ten seconds, as all rows are simulated at all levels.
std::vector<PredictedStep> predict_published_steps();

// Mean absolute errors of the speed-ups, in points of 100.
struct SpeedupErrors {
    double interleaved = 0;
    std::map<std::string, double> interleaved_on;  // [cluster]
    double intra_batch = 0;
    double side_by_side = 0;
    double mean_of_others = 0;
};
SpeedupErrors errors_of(const std::vector<PredictedStep>& predicted);

// What the interleaved column is held to, by a test.
inline constexpr double kGreatestSpeedupError = 7;

std::string print(const std::vector<PredictedStep>& predicted);

}  // namespace atl
