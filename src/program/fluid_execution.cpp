#include "program/fluid_execution.h"

#include <algorithm>

namespace atl {

FluidExecution::FluidExecution(const ExecutionGraph& graph,
                               const std::vector<std::vector<std::size_t>>& successors,
                               const std::vector<std::vector<OpClass>>& classes, const OverlapModel& overlap)
    : graph_(graph),
      successors_(successors),
      classes_(classes),
      overlap_(overlap),
      states_(graph.nodes.size()),
      running_(classes.size()),
      times_(graph.nodes.size()) {
    for (std::size_t node = 0; node < graph.nodes.size(); ++node)
        states_[node].waits_for = graph.predecessors[node].size();
}

std::vector<OpTime> FluidExecution::run() {
    for (std::size_t node = 0; node < states_.size(); ++node)
        if (states_[node].waits_for == 0) start(node, 0);
    while (!ends_.empty()) {
        const End next = ends_.top();
        ends_.pop();
        if (states_[next.node].version == next.version) end(next.node, next.seconds);
    }
    return std::move(times_);
}

void FluidExecution::start(std::size_t node, double now) {
    auto& state = states_[node];
    times_[node].start_seconds = now;
    state.updated_at = now;
    if (state.work_left <= 0) {
        ends_.push({now, node, state.version});
        return;
    }
    for (const auto& op : graph_.nodes[node].ops) running_[op.program].push_back(node);
    update_neighbours(node, now);
}

void FluidExecution::end(std::size_t node, double now) {
    times_[node].end_seconds = now;
    auto& state = states_[node];
    ++state.version;
    if (state.work_left > 0) {
        for (const auto& op : graph_.nodes[node].ops) std::erase(running_[op.program], node);
        update_neighbours(node, now);
    }
    for (const auto next : successors_[node])
        if (--states_[next].waits_for == 0) start(next, now);
}

void FluidExecution::update_neighbours(std::size_t node, double now) {
    for (const auto& op : graph_.nodes[node].ops)
        for (const auto neighbour : running_[op.program]) update(neighbour, now);
}

void FluidExecution::update(std::size_t node, double now) {
    auto& state = states_[node];
    const double rate = rate_of(node);
    if (rate == state.rate && state.version > 0) return;
    // Never down to 0: what is left says that the node is at work.
    const double done = (now - state.updated_at) * state.rate;
    state.work_left = std::max(state.work_left - done, 1e-15 * state.work_left);
    state.updated_at = now;
    state.rate = rate;
    ends_.push({now + state.work_left / rate, node, ++state.version});
}

double FluidExecution::rate_of(std::size_t node) const {
    double slowest = 1;
    for (const auto& [program, op] : graph_.nodes[node].ops) {
        double rate = 1;
        const auto& classes = classes_[program];
        const auto& mine = classes[static_cast<std::size_t>(op.value())];
        for (const auto other : running_[program]) {
            if (other == node) continue;
            const auto& ops = graph_.nodes[other].ops;
            const auto here = std::ranges::find(ops, program, &RankOp::program);
            rate /= overlap_.slowdown(mine, classes[static_cast<std::size_t>(here->op.value())]);
        }
        slowest = std::min(slowest, rate);
    }
    return slowest;
}

}  // namespace atl
