#include "simulator/inserted_exchanges.h"

#include <fmt/format.h>

#include <map>

#include "core/check.h"

namespace atl {
namespace {

// Writes a step's ops anew, block by block, with exchanges of a group between them.
class Rewriter {
  public:
    Rewriter(StepOps step, const std::string& group, std::int32_t ranks, Resource link)
        : given_(std::move(step)), made_(given_), group_(group), link_(link) {
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

    const Program& program() const { return made_.program; }

    // write(op) adds what stands for the op; others wait for the last of it.
    template <class Write>
    StepOps run(Write&& write) {
        std::vector<OpId> renumbered(given_.program.ops.size(), OpId(-1));
        for (Op op : given_.program.ops) {
            const auto index = static_cast<std::size_t>(op.id.value());
            block_ = block_of_.at(op.id);
            for (auto& earlier : op.after) earlier = renumbered[static_cast<std::size_t>(earlier.value())];
            write(op);
            renumbered[index] = made_.program.ops.back().id;
        }
        return std::move(made_);
    }

    OpId add(Op op) {
        op.id = OpId(static_cast<std::int32_t>(made_.program.ops.size()));
        made_.blocks[block_].ops.push_back(op.id);
        made_.program.ops.push_back(std::move(op));
        return made_.program.ops.back().id;
    }
    // Of what `read` has, beside or before `neighbour`.
    void exchange(const Op& neighbour, ValueId read, ValueId written, std::int64_t bytes,
                  std::vector<OpId> after = {}) {
        add({.kind = OpKind::all_reduce,
             .attributes = CollectiveAttributes{group_, 0},
             .reads = {read},
             .writes = {written},
             .strand = neighbour.strand,
             .layer = neighbour.layer,
             .micro_batch = neighbour.micro_batch,
             .resource = link_,
             .bytes = bytes,
             .after = std::move(after)});
    }
    // What arrives by an exchange.
    ValueId add_arrival() {
        const ValueId id(static_cast<std::int32_t>(made_.program.values.size()));
        made_.program.values.push_back(
            {.id = id, .name = fmt::format("{}.arrival_{}", group_, id.value()), .shape = {1}});
        return id;
    }

  private:
    StepOps given_;
    StepOps made_;
    std::string group_;
    Resource link_;
    std::size_t block_ = 0;
    std::map<OpId, std::size_t> block_of_;
};

// The rank's queries against one part's keys and values.
Op part_of(const Op& attention, std::int32_t parts) {
    Op part = attention;
    part.flops /= parts;
    part.bytes /= parts;
    return part;
}

void write_ring(Rewriter& step, const Op& attention, std::int32_t ranks, std::int64_t bytes) {
    const bool backward = attention.kind == OpKind::attention_backward;
    // Flops of a part of the sequence alone were counted: each of its queries sees `ranks` times as many keys.
    Op whole = attention;
    whole.flops *= ranks;
    const auto own = attention.reads.at(backward ? 1 : 0);
    auto held = own, gradient = own;
    std::optional<OpId> last_part;
    for (std::int32_t i = 0; i < ranks; ++i) {
        Op part = part_of(whole, ranks);
        if (i > 0) part.reads.push_back(held);
        if (i + 1 < ranks) {
            const auto next = step.add_arrival();
            step.exchange(attention, held, next, bytes);
            held = next;
        }
        if (backward && last_part) {
            // What has come so far and the last part's share go on together.
            const auto next = step.add_arrival();
            step.exchange(attention, gradient, next, bytes, {*last_part});
            gradient = next;
        }
        last_part = step.add(part);
    }
    if (!backward) return;
    step.add({.kind = OpKind::add,
              .reads = {gradient},
              .writes = attention.writes,
              .strand = attention.strand,
              .layer = attention.layer,
              .micro_batch = attention.micro_batch,
              .bytes = 3 * bytes});
}

}  // namespace

StepOps with_context_parallel(StepOps step, const ContextParallel& context) {
    if (context.ranks == 1) return step;
    Rewriter rewriter(std::move(step), "cp", context.ranks, context.link);
    return rewriter.run([&](const Op& op) {
        if (op.kind == OpKind::attention || op.kind == OpKind::attention_backward)
            write_ring(rewriter, op, context.ranks, context.key_value_bytes);
        else
            rewriter.add(op);
    });
}

StepOps with_experts(StepOps step, const ExpertParallel& experts) {
    if (experts.ranks == 1) return step;
    Rewriter rewriter(std::move(step), "ep", experts.ranks, experts.link);
    const auto ends_with = [&](ValueId id, std::string_view part) {
        return rewriter.program().value(id).name.ends_with(part);
    };
    const auto exchange = [&](const Op& op, ValueId value) {
        rewriter.exchange(
            op, value, value,
            rewriter.program().value(value).bytes() * experts.active * (experts.ranks - 1) / experts.ranks);
    };
    return rewriter.run([&](const Op& op) {
        // Backward begins with the weight gradient of what forward ended with.
        const bool begins =
            (op.kind == OpKind::linear && ends_with(op.writes[0], ".up")) ||
            (op.kind == OpKind::linear_backward_weight && ends_with(op.reads[1], ".activated"));
        const bool ends = (op.kind == OpKind::linear && ends_with(op.writes[0], ".down")) ||
                          (op.kind == OpKind::linear_backward_input && ends_with(op.writes[0], ".up.dinput"));
        if (begins) exchange(op, op.reads[0]);
        rewriter.add(op);
        if (ends) exchange(op, op.writes[0]);
    });
}

}  // namespace atl
