// A program whose ops are bound: each with its calls, with what it waits for, and in the queue of its resource.
#pragma once

#include <map>
#include <vector>

#include "engine/bind.h"
#include "engine/executor.h"

namespace atl {

struct BoundOp {
    const Op* op = nullptr;
    BoundCall call;  // of a send or a receive: until it is over
    BoundCall post;  // of those alone
    std::vector<OpId>
        waits;  // ops of other resources, and of its own if that posts ahead; one for each resource
    bool is_awaited = false;  // by such an op
    StepShare share = StepShare::forward;
};

struct BoundProgram {
    // All arguments outlive it. Sets the thread counts of this thread's OpenMP and libtorch.
    BoundProgram(const Program& program, const ProgramMemory& memory, const ExecutorOptions& options);

    std::vector<BoundOp> ops;                                // [op]
    std::map<Resource, std::vector<const BoundOp*>> queues;  // in issue order
};

}  // namespace atl
