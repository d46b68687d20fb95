// Published speeds of training steps with and without interleaved micro-batches.
//
// Wang et al., "DHelix" (arXiv 2411.15871; DHeLlam, ICCD 2025): 15 set-ups of 64 accelerators, speed-up over Megatron-LM
// of an overlap inside one micro-batch, of Wavelet+ (two forwards or two backwards side by side) and of DHelix (a forward
// beside a backward): printed labels of their figures. Speeds are the heights of bars in those figures' vector graphics.
// TFLOP/s of dense models count as Megatron-LM does: attention as if no key were masked.
//
// Published with them are layouts, the lengths of A800's sequences, and 16k tokens for "long" on A40. Chosen here: shapes
// that give the models' sizes, half as many tokens where a sequence isn't cut in two, sixteen micro-batches of one
// sequence. Plain data.
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

// What the published time of the serial step says something about, where the other is taken from the cluster.
enum class SerialUnknown : std::uint8_t {
    links,  // how fast this run's links are
    compute,  // how efficient its kernels are: experts run others than dense models, for which the cluster's figure is
};

struct PublishedStep {
    std::string name;
    std::string cluster;
    IslandStep step;
    double serial_seconds = 0;
    PublishedSpeedups speedups;
    SerialUnknown unknown = SerialUnknown::links;
};
const std::vector<PublishedStep>& published_steps();

}  // namespace atl
