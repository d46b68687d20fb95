// The execution graph of all ranks' programs: what must have finished before what may start, with the matching
// ops of a collective joined into one node. The checker looks for cycles in it, the virtual executor walks it.
//
// Edges: order on each resource, data edges, `after` edges. Cost: O(ops + edges).
#pragma once

#include <vector>

#include "program/program.h"

namespace atl {

struct RankOp {
    std::size_t program = 0;  // index in the list of programs
    OpId op;
    bool operator==(const RankOp&) const = default;
};

struct ExecutionGraph {
    std::vector<std::vector<RankOp>> nodes;              // [node]: one op, or a collective's op on every rank
    std::vector<std::vector<std::size_t>> node_of;       // [program][op]
    std::vector<std::vector<std::size_t>> predecessors;  // [node], sorted, without repetition

    // Nodes in an order in which every predecessor comes first. Shorter than `nodes` if there is a cycle.
    std::vector<std::size_t> topological_order() const;
    // Some cycle, each node a predecessor of the next and the last of the first; empty if there is none.
    std::vector<std::size_t> find_cycle() const;
};

// The n-th collective of a group is one node over all programs that list the group, even if attributes differ:
// whether they match is the checker's business.
ExecutionGraph make_execution_graph(const std::vector<Program>& programs);

}  // namespace atl
