#include "program/virtual_executor.h"

#include <algorithm>

#include "core/check.h"
#include "program/execution_graph.h"
#include "program/text.h"

namespace atl {

VirtualRun execute_virtually(const std::vector<Program>& programs,
                             const std::vector<std::vector<double>>& op_seconds, ExecutionMode mode) {
    ATOLL_CHECK_EQ(programs.size(), op_seconds.size());
    const auto graph = make_execution_graph(programs, mode);
    const auto order = graph.topological_order();
    if (order.size() < graph.nodes.size()) {
        const auto& stuck = graph.nodes[graph.find_cycle().front()].ops.front();
        ATOLL_CHECK(false, "[program] rank {}: {} waits for itself", programs[stuck.program].rank,
                    describe(programs[stuck.program].op(stuck.op)));
    }

    VirtualRun run;
    run.busy_seconds.resize(programs.size(), {});
    for (std::size_t i = 0; i < programs.size(); ++i) {
        ATOLL_CHECK_EQ(programs[i].ops.size(), op_seconds[i].size(), "durations of rank {}",
                       programs[i].rank);
        run.ops.emplace_back(programs[i].ops.size());
    }
    // The FIFOs' order is among the edges, so a node starts when the last of its predecessors ends.
    std::vector<OpTime> times(graph.nodes.size());
    for (const auto node : order) {
        auto& time = times[node];
        for (const auto earlier : graph.predecessors[node])
            time.start_seconds = std::max(time.start_seconds, times[earlier].end_seconds);
        time.end_seconds = time.start_seconds;
        const auto& [kind, ops] = graph.nodes[node];
        if (kind == NodeKind::work || kind == NodeKind::transfer) {
            double duration = 0;
            for (const auto& [program, op] : ops)
                duration = std::max(duration, op_seconds[program][static_cast<std::size_t>(op.value())]);
            time.end_seconds += duration;
            for (const auto& [program, op] : ops) {
                run.ops[program][static_cast<std::size_t>(op.value())] = time;
                const auto resource = static_cast<std::size_t>(programs[program].op(op).resource);
                run.busy_seconds[program][resource] += duration;
            }
        } else if (kind == NodeKind::end) {
            const auto& [program, op] = ops.front();
            run.ops[program][static_cast<std::size_t>(op.value())].end_seconds = time.end_seconds;
        }
        run.step_seconds = std::max(run.step_seconds, time.end_seconds);
    }
    return run;
}

}  // namespace atl
