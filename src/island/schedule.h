// Learning-rate schedules: pure functions of the step.
//
//   constant  warm-up, then lr
//   cosine    warm-up, then half a cosine from lr down to final_lr_fraction · lr at the last step
//   wsd       warm-up, lr, then over the last decay_fraction of the steps a line down to the same floor
//
// Warm-up rises in a line and reaches lr at step warmup_steps; step 0 has lr / warmup_steps.
// Sources: Loshchilov & Hutter, "SGDR" (ICLR 2017); Hu et al., "MiniCPM" (2024) for wsd.
#pragma once

#include <cstdint>

#include "config/run_config.h"

namespace atl {

// The rate of step `step` (from 0) in a run of `steps` steps.
double learning_rate(const OptimConfig& optim, std::int64_t step, std::int64_t steps);

}  // namespace atl
