// The execution graph of all ranks' programs: what must have finished before what may start, with what happens on
// several ranks at once joined into one node. The checker looks for cycles in it, the virtual executor walks it.
//
// Nodes: one per op; one per collective for all its ranks; and for a send and the receive it meets, one for each of
// their posts, one for the transfer between them and one for each of their ends:
//   a post     waits for the data, `after` and mode edges of its op, and for the post before it on its resource
//   a transfer waits for both posts, and for the transfer before it from that rank to that rank
//   an end     waits for the transfer, and for the end before it on its resource
// Edges: order on each resource, data edges, `after` edges, the mode's (program/execution_mode.h).
// Cost: O(ops + edges).
#pragma once

#include <vector>

#include "program/execution_mode.h"
#include "program/program.h"

namespace atl {

struct RankOp {
    std::size_t program = 0;  // index in the list of programs
    OpId op;
    bool operator==(const RankOp&) const = default;
};

enum class NodeKind : std::uint8_t { work, post, transfer, end };

struct ExecutionNode {
    NodeKind kind = NodeKind::work;
    std::vector<RankOp>
        ops;  // one, or a collective's op on every rank, or the send and the receive of a transfer
};

struct ExecutionGraph {
    std::vector<ExecutionNode> nodes;
    std::vector<std::vector<std::size_t>> starts_at;     // [program][op]: its only node, or its post
    std::vector<std::vector<std::size_t>> ends_at;       // [program][op]: its only node, or its end
    std::vector<std::vector<std::size_t>> predecessors;  // [node], sorted, without repetition

    // Nodes in an order in which every predecessor comes first. Shorter than `nodes` if there is a cycle.
    std::vector<std::size_t> topological_order() const;
    // Some cycle, each node a predecessor of the next and the last of the first; empty if there is none.
    std::vector<std::size_t> find_cycle() const;
};

// The n-th collective of a group is one node over all programs that list the group, and the n-th send from a to b meets
// the n-th receive at b from a, even if attributes differ or one is missing: whether they match is the checker's
// business.
ExecutionGraph make_execution_graph(const std::vector<Program>& programs,
                                    ExecutionMode mode = ExecutionMode::event);

}  // namespace atl
