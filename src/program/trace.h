// A step as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: one process per timing and rank, one
// thread per resource, one slice per op with its layer, micro-batch, strand, flops and bytes, and an arrow from each
// send to its receive.
//
// The Trace Event Format's JSON: complete events, times in microseconds. About 300 bytes an op. A pure function.
#pragma once

#include "program/gantt.h"

namespace atl {

std::string chrome_trace(const std::vector<Program>& programs, const std::vector<StepTiming>& timings);

}  // namespace atl
