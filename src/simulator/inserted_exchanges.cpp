#include "simulator/inserted_exchanges.h"

#include <functional>
#include <map>

#include "core/check.h"

namespace atl {
namespace {

// Around an op: bytes that travel before it in what it reads, and behind it in what it writes; 0 = nothing.
struct Around {
    std::int64_t bytes_before = 0;
    std::size_t read = 0;
    std::int64_t bytes_behind = 0;
};
using Rule = std::function<Around(const Op&)>;

class Inserter {
  public:
    Inserter(StepOps step, const std::string& group, std::int32_t ranks)
        : given_(std::move(step)), group_(group) {
        made_ = given_;
        made_.program.ops.clear();
        for (auto& block : made_.blocks) block.ops.clear();
        // The others stand behind all ranks that have a program, in steps wide enough to keep groups apart.
        constexpr std::int32_t kApart = 1 << 20;
        std::vector<Rank> members;
        for (std::int32_t i = 0; i < ranks; ++i)
            members.emplace_back(given_.program.rank.value() + i * kApart);
        made_.program.groups[group] = members;
        for (std::size_t block = 0; block < given_.blocks.size(); ++block)
            for (const auto id : given_.blocks[block].ops) block_of_[id] = block;
    }

    StepOps run(const Rule& rule) {
        std::vector<OpId> renumbered(given_.program.ops.size(), OpId(-1));
        for (const auto& op : given_.program.ops) {
            const auto around = rule(op);
            if (around.bytes_before > 0) add_exchange(op, op.reads.at(around.read), around.bytes_before);
            Op copy = op;
            for (auto& earlier : copy.after) earlier = renumbered[static_cast<std::size_t>(earlier.value())];
            renumbered[static_cast<std::size_t>(op.id.value())] = add(std::move(copy), block_of_.at(op.id));
            if (around.bytes_behind > 0) add_exchange(op, op.writes.front(), around.bytes_behind);
        }
        return std::move(made_);
    }

  private:
    OpId add(Op op, std::size_t block) {
        op.id = OpId(static_cast<std::int32_t>(made_.program.ops.size()));
        made_.blocks[block].ops.push_back(op.id);
        made_.program.ops.push_back(std::move(op));
        return made_.program.ops.back().id;
    }
    void add_exchange(const Op& neighbour, ValueId value, std::int64_t bytes) {
        add({.kind = OpKind::all_reduce,
             .attributes = CollectiveAttributes{group_, 0},
             .reads = {value},
             .writes = {value},
             .strand = neighbour.strand,
             .layer = neighbour.layer,
             .micro_batch = neighbour.micro_batch,
             .resource = Resource::link_inter,
             .bytes = bytes},
            block_of_.at(neighbour.id));
    }

    StepOps given_;
    StepOps made_;
    std::string group_;
    std::map<OpId, std::size_t> block_of_;
};

bool ends_with(const Program& program, ValueId id, std::string_view part) {
    return program.value(id).name.ends_with(part);
}

}  // namespace

StepOps with_context_parallel(StepOps step, const ContextParallel& context) {
    if (context.ranks == 1) return step;
    for (auto& op : step.program.ops)
        if (op.kind == OpKind::attention || op.kind == OpKind::attention_backward) op.flops *= context.ranks;
    const auto bytes = context.key_value_bytes * (context.ranks - 1);
    return Inserter(std::move(step), "cp", context.ranks).run([&](const Op& op) -> Around {
        if (op.kind == OpKind::attention) return {.bytes_before = bytes};
        if (op.kind == OpKind::attention_backward) return {.bytes_before = bytes, .bytes_behind = bytes};
        return {};
    });
}

StepOps with_experts(StepOps step, const ExpertParallel& experts) {
    if (experts.ranks == 1) return step;
    const Program program = step.program;
    const auto bytes_of = [&](ValueId id) {
        return program.value(id).bytes() * experts.active * (experts.ranks - 1) / experts.ranks;
    };
    return Inserter(std::move(step), "ep", experts.ranks).run([&](const Op& op) -> Around {
        if (op.kind == OpKind::linear && ends_with(program, op.writes[0], ".up"))
            return {.bytes_before = bytes_of(op.reads[0])};
        if (op.kind == OpKind::linear && ends_with(program, op.writes[0], ".down"))
            return {.bytes_behind = bytes_of(op.writes[0])};
        // Backward begins with the weight gradient of what forward ended with.
        if (op.kind == OpKind::linear_backward_weight && ends_with(program, op.reads[1], ".activated"))
            return {.bytes_before = bytes_of(op.reads[0])};
        if (op.kind == OpKind::linear_backward_input && ends_with(program, op.writes[0], ".up.dinput"))
            return {.bytes_behind = bytes_of(op.writes[0])};
        return {};
    });
}

}  // namespace atl
