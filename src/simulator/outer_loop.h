// Sites on a simulated clock: inner steps, and the exchange of fragments between sites over wide-area links.
//
// Every site is a program whose compute ops last as long as its inner steps and whose LINK_WAN ops are collectives of
// all sites; the virtual executor runs them together. A fragment starts and is applied after the steps that
// rounds/fragment_schedule.h says; one link per site carries one exchange at a time, in the order of their starts.
//
// by_layer: how the published simulators of DiLoCo count. A layer's share of a fragment leaves as soon as the backward of
// that layer is done, and the forward of the layer that waits for it begins when it has come. Otherwise, as in Atoll, a
// fragment leaves after the whole step (clipping needs all gradients) and is applied between two steps.
//
// Seconds. Pure functions. Errors: CheckError for a schedule that can't be.
// Cost: O(sites x (H + P x layers)) ops for the virtual executor.
// Source: Douillard et al., "Streaming DiLoCo" (arXiv 2501.18512), appendix on bandwidth.
#pragma once

#include <vector>

#include "program/virtual_executor.h"
#include "rounds/fragment_schedule.h"

namespace atl {

struct OuterLoop {
    FragmentSchedule schedule;
    std::int32_t layers = 1;
    std::vector<double> step_seconds;  // [site]: compute of an inner step
    double exchange_seconds = 0;       // of the whole model, all fragments together, without latency
    double latency_seconds = 0;        // of each exchange of a fragment
    bool by_layer = false;
};

struct OuterLoopRun {
    double round_seconds = 0;                 // of one round, when rounds have become alike
    std::vector<double> compute_utilization;  // [site]: computing seconds of a round / round_seconds
    std::vector<Program> programs;            // [site], of some rounds
    VirtualRun times;
};

OuterLoopRun simulate(const OuterLoop& loop);

// The longest exchange of the whole model with which the first site still reaches this utilization; without latency.
// To within 1 %.
double longest_exchange_seconds(OuterLoop loop, double compute_utilization);

}  // namespace atl
