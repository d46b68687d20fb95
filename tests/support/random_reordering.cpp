#include "support/random_reordering.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/check.h"
#include "program/dependencies.h"
#include "program/reorder.h"
#include "support/random_program.h"

namespace atl::test {
namespace {

struct RankOp {
    std::size_t program = 0;
    OpId op;
};

// What happens at one moment: an op, a collective on all its ranks, or a send with its receive.
struct Node {
    std::vector<RankOp> ops;
    std::vector<std::size_t> successors;
    std::size_t waits_for = 0;
    std::int32_t micro_batch = -1;
};

// A single order of all ranks' ops exists in which every op follows what it needs; each rank's part of it is its new
// order. So no two ranks can wait for each other.
class Reordering {
  public:
    Reordering(const std::vector<Program>& programs, std::uint64_t seed)
        : programs_(programs), random_(seed), manner_(seed % 4), orders_(programs.size()) {
        for (std::size_t i = 0; i < programs.size(); ++i) add_nodes(i);
        for (std::size_t i = 0; i < programs.size(); ++i) add_edges(i);
    }

    std::vector<Program> run() {
        for (std::size_t node = 0; node < nodes_.size(); ++node)
            if (nodes_[node].waits_for == 0) ready_.push_back(node);
        while (!ready_.empty()) {
            const auto chosen = choose();
            const auto node = ready_[chosen];
            ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
            for (const auto& [program, op] : nodes_[node].ops) orders_[program].push_back(op);
            for (const auto next : nodes_[node].successors)
                if (--nodes_[next].waits_for == 0) ready_.push_back(next);
        }
        std::vector<Program> result;
        for (std::size_t i = 0; i < programs_.size(); ++i) {
            result.push_back(reordered(programs_[i], orders_[i]));
            for (auto& op : result.back().ops) op.strand = std::max(op.micro_batch, 0) % 2;
        }
        return result;
    }

  private:
    void add_nodes(std::size_t index) {
        const auto& program = programs_[index];
        auto& node_of = node_of_.emplace_back();
        for (const auto& op : program.ops) {
            std::size_t node = nodes_.size();
            if (const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes))
                node = joint_node(
                    {collective->group, program.groups.at(collective->group), collective->sequence});
            if (const auto* message = std::get_if<PointToPointAttributes>(&op.attributes)) {
                const bool sends = op.kind == OpKind::send;
                node =
                    joint_node({"message",
                                {sends ? program.rank : message->peer, sends ? message->peer : program.rank},
                                message->sequence});
            }
            if (node == nodes_.size()) nodes_.emplace_back();
            nodes_[node].ops.push_back({index, op.id});
            nodes_[node].micro_batch = op.micro_batch;
            node_of.push_back(node);
        }
    }
    using Key = std::tuple<std::string, std::vector<Rank>, std::int32_t>;
    std::size_t joint_node(Key key) {
        return joint_.try_emplace(std::move(key), nodes_.size()).first->second;
    }

    void add_edges(std::size_t index) {
        const auto& program = programs_[index];
        const auto data = data_edges(program);
        for (std::size_t i = 0; i < program.ops.size(); ++i)
            for (const auto* edges : {&data[i], &program.ops[i].after})
                for (const auto earlier : *edges) {
                    nodes_[node_of_[index][static_cast<std::size_t>(earlier.value())]].successors.push_back(
                        node_of_[index][i]);
                    ++nodes_[node_of_[index][i]].waits_for;
                }
    }

    // Index into ready_.
    std::size_t choose() {
        const auto any = [&] { return static_cast<std::size_t>(random_.below(std::ssize(ready_))); };
        const auto first = [&](auto key) {
            return static_cast<std::size_t>(std::ranges::min_element(ready_, {}, key) - ready_.begin());
        };
        const auto micro_batch = [&](std::size_t node) { return nodes_[node].micro_batch; };
        switch (manner_) {
            case 0:  // all at once
                return any();
            case 1:  // the newest first: deep before wide
                return random_.one_in(4) ? any() : ready_.size() - 1;
            case 2:  // mostly one micro-batch after another
                return random_.one_in(8) ? any() : first(micro_batch);
            default:  // two strands: even and odd micro-batches in turn
                strand_ = random_.one_in(3) ? 1 - strand_ : strand_;
                return first([&](std::size_t node) {
                    return std::pair(std::max(micro_batch(node), 0) % 2 != strand_, micro_batch(node));
                });
        }
    }

    const std::vector<Program>& programs_;
    RandomChoice random_;
    const std::uint64_t manner_;
    std::int32_t strand_ = 0;
    std::vector<std::vector<OpId>> orders_;
    std::vector<Node> nodes_;
    std::vector<std::vector<std::size_t>> node_of_;  // [program][op]
    std::map<Key, std::size_t> joint_;
    std::vector<std::size_t> ready_;
};

}  // namespace

std::vector<Program> random_reordering(const std::vector<Program>& programs, std::uint64_t seed) {
    auto free = programs;
    if (seed % 2 == 1)
        for (auto& program : free)
            for (auto& op : program.ops) op.after.clear();
    return Reordering(free, seed / 2).run();
}

}  // namespace atl::test
