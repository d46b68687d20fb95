#include "program/execution_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "program/dependencies.h"

namespace atl {
namespace {

// The n-th collective of a group: group, members, n.
using CollectiveKey = std::tuple<std::string, std::vector<Rank>, std::int32_t>;

// Gives every op its node; the first rank to come to a collective makes the node for all.
void make_nodes(const std::vector<Program>& programs, ExecutionGraph& graph) {
    std::map<CollectiveKey, std::size_t> collectives;
    for (std::size_t i = 0; i < programs.size(); ++i) {
        std::map<std::string, std::int32_t> issued;
        auto& node_of = graph.node_of.emplace_back();
        for (const auto& op : programs[i].ops) {
            std::size_t node = graph.nodes.size();
            if (const auto* attributes = std::get_if<CollectiveAttributes>(&op.attributes)) {
                const auto members = programs[i].groups.find(attributes->group);
                CollectiveKey key{attributes->group, {}, issued[attributes->group]++};
                if (members != programs[i].groups.end()) std::get<1>(key) = members->second;
                node = collectives.try_emplace(std::move(key), node).first->second;
            }
            if (node == graph.nodes.size()) graph.nodes.emplace_back();
            graph.nodes[node].push_back({i, op.id});
            node_of.push_back(node);
        }
    }
}

void add_edges(const Program& program, const std::vector<std::size_t>& node_of, ExecutionGraph& graph) {
    const auto edges = data_edges(program);
    std::array<std::optional<std::size_t>, kResources> newest;
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        auto& predecessors = graph.predecessors[node_of[i]];
        for (const auto earlier : edges[i])
            predecessors.push_back(node_of[static_cast<std::size_t>(earlier.value())]);
        for (const auto earlier : program.ops[i].after)
            predecessors.push_back(node_of[static_cast<std::size_t>(earlier.value())]);
        auto& last = newest[static_cast<std::size_t>(program.ops[i].resource)];
        if (last) predecessors.push_back(node_of[*last]);
        last = i;
    }
}

}  // namespace

ExecutionGraph make_execution_graph(const std::vector<Program>& programs) {
    ExecutionGraph graph;
    make_nodes(programs, graph);
    graph.predecessors.resize(graph.nodes.size());
    for (std::size_t i = 0; i < programs.size(); ++i) add_edges(programs[i], graph.node_of[i], graph);
    for (auto& predecessors : graph.predecessors) {
        std::ranges::sort(predecessors);
        predecessors.erase(std::ranges::unique(predecessors).begin(), predecessors.end());
    }
    return graph;
}

std::vector<std::size_t> ExecutionGraph::topological_order() const {
    std::vector<std::vector<std::size_t>> successors(nodes.size());
    std::vector<std::size_t> waiting_for(nodes.size());
    std::vector<std::size_t> order;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        waiting_for[node] = predecessors[node].size();
        for (const auto earlier : predecessors[node]) successors[earlier].push_back(node);
        if (waiting_for[node] == 0) order.push_back(node);
    }
    for (std::size_t i = 0; i < order.size(); ++i)
        for (const auto next : successors[order[i]])
            if (--waiting_for[next] == 0) order.push_back(next);
    return order;
}

std::vector<std::size_t> ExecutionGraph::find_cycle() const {
    std::vector<bool> can_run(nodes.size(), false);
    for (const auto node : topological_order()) can_run[node] = true;
    const auto stuck = std::ranges::find(can_run, false);
    if (stuck == can_run.end()) return {};
    // Every stuck node waits for another one: going back from any of them comes round in the end.
    std::vector<std::size_t> path{static_cast<std::size_t>(stuck - can_run.begin())};
    while (true) {
        const auto& earlier = predecessors[path.back()];
        const auto next = *std::ranges::find_if(earlier, [&](std::size_t node) { return !can_run[node]; });
        const auto seen = std::ranges::find(path, next);
        if (seen != path.end()) {
            std::vector<std::size_t> cycle(seen, path.end());
            std::ranges::reverse(cycle);
            return cycle;
        }
        path.push_back(next);
    }
}

}  // namespace atl
