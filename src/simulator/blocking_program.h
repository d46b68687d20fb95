// A program as frameworks without interleaving run it: compute waits for the communication before it, but for what they
// launch beside computation inside one micro-batch.
//
// That is, in Megatron-LM with sequence parallelism: the reduce-scatter of an input gradient, beside the weight gradient
// of the same layer; and the hops of ring attention, beside attention of the part that is there (Korthikanti et al.,
// "Reducing Activation Recomputation", 2022; Transformer Engine's ring attention). Everything else takes turns. Sends
// are over when posted. Weight gradients stand where they were emitted. Run it in ExecutionMode::event. Ops are
// renumbered. Pure functions. Cost: O(ops).
#pragma once

#include "program/program.h"

namespace atl {

Program with_blocking_communication(Program program);

}  // namespace atl
