// Binding of communication: from a collective or a message of a program to calls on the group it belongs to.
//
// Errors: a collective whose group is missing, and a message without point-to-point, fail a check.
#pragma once

#include "engine/bind.h"
#include "engine/executor.h"

namespace atl {

BoundCall bind_collective(const Program& program, const ProgramMemory& memory, const Op& op,
                          const ExecutorOptions& options);

// A send or a receive: `post` returns at once, `wait` when it is over.
struct BoundMessage {
    BoundCall post;
    BoundCall wait;
};
BoundMessage bind_message(const Program& program, const ProgramMemory& memory, const Op& op,
                          const ExecutorOptions& options);

}  // namespace atl
