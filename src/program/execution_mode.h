// Modes: how much of a program's freedom an executor uses. All give the same bits.
//
//  event    an op starts when its issue order, data edges and `after` edges let it
//  barrier  as event, and all resources meet after each segment. A segment is a run of communication and the compute
//           beside it: it begins at each communication op that stands behind a compute op. This reproduces runtimes
//           that launch a block's communication and computation together and then synchronise the device
//  serial   one op at a time, in list order
//
// A send is over for both when it is posted: neither waits for its receiver, or two ranks that send to each other
// would wait for ever.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace atl {

enum class ExecutionMode : std::uint8_t { event, barrier, serial };

std::string_view name(ExecutionMode mode);
std::optional<ExecutionMode> execution_mode_from_name(std::string_view text);

// [op]: the number of its segment.
std::vector<std::int32_t> segments_of(const Program& program);

// [op]: the ops that it must wait for because of the mode; all of them stand before it. Empty for event.
std::vector<std::vector<OpId>> mode_edges(const Program& program, ExecutionMode mode);

}  // namespace atl
