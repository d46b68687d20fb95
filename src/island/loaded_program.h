// A program ready to run: placed, with its memory and its executor.
#pragma once

#include <memory>

#include "data/micro_batch.h"
#include "engine/executor.h"
#include "model/initial_values.h"
#include "program/placement.h"

namespace atl {

struct LoadedProgram {
    // Fills in the rotary table, which is a function of the shape alone.
    LoadedProgram(Program program_to_run, const ModelShape& shape, const ProgramMemoryOptions& memory_options,
                  const ExecutorOptions& executor_options);

    MicroBatchView inputs(std::int64_t micro_batch);
    double loss(std::int64_t micro_batch);
    std::int64_t measured_bytes() const;

    Program program;
    Placement placement;
    ProgramMemory memory;
    Executor executor;
};

}  // namespace atl
