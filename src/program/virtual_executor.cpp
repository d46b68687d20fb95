#include "program/virtual_executor.h"

#include <algorithm>

#include "core/check.h"
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

}  // namespace

VirtualExecutor::VirtualExecutor(const std::vector<Program>& programs, ExecutionMode mode)
    : graph_(make_execution_graph(programs, mode)),
      order_(graph_.topological_order()),
      successors_(graph_.nodes.size()) {
    if (order_.size() < graph_.nodes.size()) {
        const auto& stuck = graph_.nodes[graph_.find_cycle().front()].ops.front();
        ATOLL_CHECK(false, "[program] rank {}: {} waits for itself", programs[stuck.program].rank,
                    describe(programs[stuck.program].op(stuck.op)));
    }
    for (std::size_t node = 0; node < graph_.nodes.size(); ++node)
        for (const auto earlier : graph_.predecessors[node]) successors_[earlier].push_back(node);
    for (const Program& program : programs) {
        auto& classes = classes_.emplace_back();
        classes.reserve(program.ops.size());
        for (const Op& op : program.ops) classes.push_back(class_of(op));
    }
}

VirtualRun VirtualExecutor::run(const std::vector<std::vector<double>>& op_seconds,
                                const OverlapModel& overlap) const {
    ATOLL_CHECK_EQ(classes_.size(), op_seconds.size());
    for (std::size_t i = 0; i < classes_.size(); ++i)
        ATOLL_CHECK_EQ(classes_[i].size(), op_seconds[i].size(), "durations of program {}", i);
    if (overlap.slows_nothing()) return run_of(times_without_slowdown(graph_, order_, op_seconds));
    FluidExecution execution(graph_, successors_, classes_, overlap);
    for (std::size_t node = 0; node < graph_.nodes.size(); ++node)
        execution.set_work(node, alone_seconds(graph_.nodes[node], op_seconds));
    return run_of(execution.run());
}

VirtualRun VirtualExecutor::run_of(const std::vector<OpTime>& times) const {
    VirtualRun run;
    run.busy_seconds.resize(classes_.size(), {});
    for (const auto& classes : classes_) run.ops.emplace_back(classes.size());
    for (std::size_t node = 0; node < times.size(); ++node) {
        const auto& time = times[node];
        run.step_seconds = std::max(run.step_seconds, time.end_seconds);
        if (!takes_time(graph_.nodes[node])) continue;
        for (const auto& [program, op] : graph_.nodes[node].ops) {
            const auto index = static_cast<std::size_t>(op.value());
            run.ops[program][index] = time;
            run.busy_seconds[program][static_cast<std::size_t>(classes_[program][index].resource)] +=
                time.end_seconds - time.start_seconds;
        }
    }
    for (std::size_t node = 0; node < times.size(); ++node) {
        if (graph_.nodes[node].kind != NodeKind::end) continue;
        const auto& [program, op] = graph_.nodes[node].ops.front();
        run.ops[program][static_cast<std::size_t>(op.value())].end_seconds = times[node].end_seconds;
    }
    return run;
}

VirtualRun execute_virtually(const std::vector<Program>& programs,
                             const std::vector<std::vector<double>>& op_seconds, ExecutionMode mode,
                             const OverlapModel& overlap) {
    return VirtualExecutor(programs, mode).run(op_seconds, overlap);
}

}  // namespace atl
