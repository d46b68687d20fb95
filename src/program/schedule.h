// Schedules: pure functions from the ops of a step to a program, that is to an issue order.
//
// Whatever the order, gradients are added up by micro-batch id, so every schedule gives the same bits.
#pragma once

#include <functional>

#include "program/interleave.h"
#include "program/schedule_table.h"
#include "program/step_ops.h"

namespace atl {

// Micro-batch by micro-batch, forward then backward, each weight gradient next to its input gradient; a bucket's
// reduction is issued right behind the last op that writes to it, so that it runs beside the rest of backward;
// then the optimizer.
Program serial_schedule(const StepOps& step);

// The issue order of the two strands of a slot: of all their ops, which are given without receives.
using OrderPair = std::function<std::vector<OpId>(const Program& program, const Slot& slot,
                                                  const LayerOps& first, const LayerOps& second)>;

// The program of one rank in a table's order; `step` holds the stages that the table gives to this rank.
//
//  - The work of a slot is its stage's blocks, layer by layer; a backward has each weight gradient next to its input
//    gradient. The two strands of a pair stand in the order that `order_pair` gives their ops, by default by turns
//    (program/interleave.h); the second one's ops get strand 1.
//  - A slot's receives stand before its work, in the table's order. They may be posted while the slot before it runs,
//    not earlier: `after` the last compute op of the slot before that, so that their memory isn't held all step long.
//  - Sends to a peer stand in the order in which the peer takes them up, so that its n-th receive is our n-th send; one
//    that is ready too early waits for those before it. A receive comes `after` the sends that its message proves
//    received, and so frees their memory without ever waiting for them.
//  - Reductions and the optimizer: as in serial_schedule.
Program expand(const StepOps& step, const ScheduleTable& table, const OrderPair& order_pair = {});

}  // namespace atl
