#include "program/execution_graph.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "program/dependencies.h"

namespace atl {
namespace {

// The n-th collective of a group: group, members, n.
using CollectiveKey = std::tuple<std::string, std::vector<Rank>, std::int32_t>;
// The n-th message from a rank to a rank: from, to, n.
using MessageKey = std::tuple<Rank, Rank, std::int32_t>;

// Gives every op its nodes; the first rank to come to a collective, or to a transfer, makes the node for all.
class NodeMaker {
  public:
    explicit NodeMaker(ExecutionGraph& graph) : graph_(graph) {}

    void add(std::size_t index, const Program& program) {
        std::map<std::string, std::int32_t> issued;
        std::map<std::pair<Rank, Rank>, std::int32_t> posted;
        graph_.starts_at.emplace_back();
        graph_.ends_at.emplace_back();
        for (const auto& op : program.ops) {
            const RankOp rank_op{index, op.id};
            if (const auto* message = std::get_if<PointToPointAttributes>(&op.attributes)) {
                const bool sends = op.kind == OpKind::send;
                const Rank from = sends ? program.rank : message->peer;
                const Rank to = sends ? message->peer : program.rank;
                add_message(rank_op, {from, to, posted[{from, to}]++});
            } else if (const auto* attributes = std::get_if<CollectiveAttributes>(&op.attributes)) {
                const auto members = program.groups.find(attributes->group);
                CollectiveKey key{attributes->group, {}, issued[attributes->group]++};
                if (members != program.groups.end()) std::get<1>(key) = members->second;
                add_op(rank_op, joint_node(collectives_, std::move(key), NodeKind::work, rank_op));
            } else {
                add_op(rank_op, new_node(NodeKind::work, rank_op));
            }
        }
    }

    const std::map<MessageKey, std::size_t>& transfers() const { return transfers_; }

  private:
    std::size_t new_node(NodeKind kind, const RankOp& op) {
        graph_.nodes.push_back({kind, {op}});
        graph_.predecessors.emplace_back();
        return graph_.nodes.size() - 1;
    }
    template <class Key>
    std::size_t joint_node(std::map<Key, std::size_t>& nodes, Key key, NodeKind kind, const RankOp& op) {
        const auto [found, is_new] = nodes.try_emplace(std::move(key), graph_.nodes.size());
        if (is_new) return new_node(kind, op);
        graph_.nodes[found->second].ops.push_back(op);
        return found->second;
    }
    void add_op(const RankOp& op, std::size_t node) {
        graph_.starts_at[op.program].push_back(node);
        graph_.ends_at[op.program].push_back(node);
    }
    void add_message(const RankOp& op, MessageKey key) {
        const std::size_t transfer = joint_node(transfers_, std::move(key), NodeKind::transfer, op);
        const std::size_t post = new_node(NodeKind::post, op);
        const std::size_t end = new_node(NodeKind::end, op);
        graph_.predecessors[transfer].push_back(post);
        graph_.predecessors[end].push_back(transfer);
        graph_.starts_at[op.program].push_back(post);
        graph_.ends_at[op.program].push_back(end);
    }

    ExecutionGraph& graph_;
    std::map<CollectiveKey, std::size_t> collectives_;
    std::map<MessageKey, std::size_t> transfers_;
};

void add_program_edges(std::size_t index, const Program& program, ExecutionMode mode, ExecutionGraph& graph) {
    const auto data = data_edges(program);
    const auto extra = mode_edges(program, mode);
    const auto& starts_at = graph.starts_at[index];
    const auto& ends_at = graph.ends_at[index];
    std::array<std::optional<std::size_t>, kResources> newest;
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        auto& before_start = graph.predecessors[starts_at[i]];
        for (const auto* edges : {&data[i], &program.ops[i].after, &extra[i]})
            for (const auto earlier : *edges)
                before_start.push_back(ends_at[static_cast<std::size_t>(earlier.value())]);
        auto& last = newest[static_cast<std::size_t>(program.ops[i].resource)];
        if (last && posts_ahead(program.ops[i].resource)) {
            before_start.push_back(starts_at[*last]);
            graph.predecessors[ends_at[i]].push_back(ends_at[*last]);
        } else if (last) {
            before_start.push_back(ends_at[*last]);
        }
        last = i;
    }
}

}  // namespace

ExecutionGraph make_execution_graph(const std::vector<Program>& programs, ExecutionMode mode) {
    ExecutionGraph graph;
    NodeMaker maker(graph);
    for (std::size_t i = 0; i < programs.size(); ++i) maker.add(i, programs[i]);
    for (std::size_t i = 0; i < programs.size(); ++i) add_program_edges(i, programs[i], mode, graph);
    for (const auto& [key, node] : maker.transfers()) {
        const auto& [from, to, n] = key;
        if (n > 0) graph.predecessors[node].push_back(maker.transfers().at({from, to, n - 1}));
    }
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
