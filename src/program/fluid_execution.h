// FluidExecution: an execution graph on a clock, where what runs at once on a rank slows each other down.
//
// A node starts when the last of its predecessors ends and has then some work to do, in seconds alone. It does it at the
// rate that the overlap model gives it on the worst of its ranks, which changes whenever another node starts or ends
// there. Part of the virtual executor. Cost: O(nodes x (edges + log nodes)), for the few that run at once on a rank.
#pragma once

#include <queue>
#include <vector>

#include "program/execution_graph.h"
#include "program/op_time.h"
#include "program/overlap_model.h"

namespace atl {

class FluidExecution {
  public:
    // All of them outlive it. The graph has no cycle.
    FluidExecution(const ExecutionGraph& graph, const std::vector<std::vector<std::size_t>>& successors,
                   const std::vector<std::vector<OpClass>>& classes, const OverlapModel& overlap);

    void set_work(std::size_t node, double seconds) { states_[node].work_left = seconds; }
    std::vector<OpTime> run();  // [node]; once

  private:
    struct NodeState {
        double work_left = 0;
        double rate = 1;
        double updated_at = 0;      // when work_left was true
        std::size_t waits_for = 0;  // predecessors
        std::int64_t version = 0;   // of its end among the events
    };
    struct End {
        double seconds;
        std::size_t node;
        std::int64_t version;
        bool operator>(const End& other) const {
            return seconds != other.seconds ? seconds > other.seconds : node > other.node;
        }
    };

    void start(std::size_t node, double now);
    void end(std::size_t node, double now);
    // Rates of what runs on the node's ranks, and when it will end.
    void update_neighbours(std::size_t node, double now);
    void update(std::size_t node, double now);
    double rate_of(std::size_t node) const;

    const ExecutionGraph& graph_;
    const std::vector<std::vector<std::size_t>>& successors_;  // [node]
    const std::vector<std::vector<OpClass>>& classes_;         // [program][op]
    const OverlapModel& overlap_;
    std::vector<NodeState> states_;
    std::vector<std::vector<std::size_t>> running_;  // [program]: nodes with work
    std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
    std::vector<OpTime> times_;
};

}  // namespace atl
