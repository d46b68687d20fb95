// Schedules: pure functions from the ops of a step to a program, that is to an issue order.
//
// Whatever the order, gradients are added up by micro-batch id, so every schedule gives the same bits.
#pragma once

#include <vector>

#include "program/step_ops.h"

namespace atl {

// The program that issues the step's ops in this order: every op exactly once (a failed check names the op that
// isn't). Ops are renumbered, and each group's collectives are counted in issue order.
Program assemble(const StepOps& step, const std::vector<OpId>& order);

// Micro-batch by micro-batch, forward then backward, each weight gradient next to its input gradient; a bucket's
// reduction is issued right behind the last op that writes to it, so that it runs beside the rest of backward;
// then the optimizer.
Program serial_schedule(const StepOps& step);

}  // namespace atl
