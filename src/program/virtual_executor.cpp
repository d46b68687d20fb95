#include "program/virtual_executor.h"

#include <algorithm>

#include "core/check.h"
#include "program/execution_graph.h"
#include "program/fluid_execution.h"
#include "program/text.h"

namespace atl {

namespace {

bool takes_time(const ExecutionNode& node) {
    return node.kind == NodeKind::work || node.kind == NodeKind::transfer;
}

// What all its ops need alone.
double alone_seconds(const ExecutionNode& node, const std::vector<std::vector<double>>& op_seconds) {
    if (!takes_time(node)) return 0;
    double duration = 0;
    for (const auto& [program, op] : node.ops)
        duration = std::max(duration, op_seconds[program][static_cast<std::size_t>(op.value())]);
    return duration;
}

// The FIFOs' order is among the edges, so a node starts when the last of its predecessors ends.
std::vector<OpTime> times_without_slowdown(const ExecutionGraph& graph, const std::vector<std::size_t>& order,
                                           const std::vector<std::vector<double>>& op_seconds) {
    std::vector<OpTime> times(graph.nodes.size());
    for (const auto node : order) {
        auto& time = times[node];
        for (const auto earlier : graph.predecessors[node])
            time.start_seconds = std::max(time.start_seconds, times[earlier].end_seconds);
        time.end_seconds = time.start_seconds + alone_seconds(graph.nodes[node], op_seconds);
    }
    return times;
}

VirtualRun run_of(const ExecutionGraph& graph, const std::vector<OpTime>& times,
                  const std::vector<Program>& programs) {
    VirtualRun run;
    run.busy_seconds.resize(programs.size(), {});
    for (const auto& program : programs) run.ops.emplace_back(program.ops.size());
    for (std::size_t node = 0; node < times.size(); ++node) {
        const auto& time = times[node];
        run.step_seconds = std::max(run.step_seconds, time.end_seconds);
        if (!takes_time(graph.nodes[node])) continue;
        for (const auto& [program, op] : graph.nodes[node].ops) {
            run.ops[program][static_cast<std::size_t>(op.value())] = time;
            const auto resource = static_cast<std::size_t>(programs[program].op(op).resource);
            run.busy_seconds[program][resource] += time.end_seconds - time.start_seconds;
        }
    }
    for (std::size_t node = 0; node < times.size(); ++node) {
        if (graph.nodes[node].kind != NodeKind::end) continue;
        const auto& [program, op] = graph.nodes[node].ops.front();
        run.ops[program][static_cast<std::size_t>(op.value())].end_seconds = times[node].end_seconds;
    }
    return run;
}

}  // namespace

VirtualRun execute_virtually(const std::vector<Program>& programs,
                             const std::vector<std::vector<double>>& op_seconds, ExecutionMode mode,
                             const OverlapModel& overlap) {
    ATOLL_CHECK_EQ(programs.size(), op_seconds.size());
    for (std::size_t i = 0; i < programs.size(); ++i)
        ATOLL_CHECK_EQ(programs[i].ops.size(), op_seconds[i].size(), "durations of rank {}",
                       programs[i].rank);
    const auto graph = make_execution_graph(programs, mode);
    const auto order = graph.topological_order();
    if (order.size() < graph.nodes.size()) {
        const auto& stuck = graph.nodes[graph.find_cycle().front()].ops.front();
        ATOLL_CHECK(false, "[program] rank {}: {} waits for itself", programs[stuck.program].rank,
                    describe(programs[stuck.program].op(stuck.op)));
    }
    if (overlap.slows_nothing())
        return run_of(graph, times_without_slowdown(graph, order, op_seconds), programs);
    FluidExecution execution(graph, programs, overlap);
    for (std::size_t node = 0; node < graph.nodes.size(); ++node)
        execution.set_work(node, alone_seconds(graph.nodes[node], op_seconds));
    return run_of(graph, execution.run(), programs);
}

}  // namespace atl
