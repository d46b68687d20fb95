#include "program/schedule.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "program/schedule_parts.h"
#include "program/text.h"

namespace atl {
namespace {

void append(std::vector<OpId>& order, const std::vector<OpId>& ops) {
    order.insert(order.end(), ops.begin(), ops.end());
}

}  // namespace

std::vector<OpId> backward_ops(const StepOps& step, std::int32_t layer, std::int32_t micro_batch) {
    auto ops = step.ops_of({Phase::backward_input, layer, micro_batch});
    append(ops, step.ops_of({Phase::backward_weight, layer, micro_batch}));
    std::ranges::sort(ops);
    return ops;
}

std::vector<OpId> insert_reductions(const StepOps& step, const std::vector<OpId>& order) {
    std::map<ValueId, std::size_t> last_write;  // [base]: position in order
    for (std::size_t i = 0; i < order.size(); ++i)
        for (const auto id : step.program.op(order[i]).writes) last_write[step.program.resolve(id).base] = i;
    std::multimap<std::size_t, OpId> behind;
    for (const auto id : step.ops_of({Phase::reduction})) {
        const auto bucket = step.program.resolve(step.program.op(id).reads.front()).base;
        ATOLL_CHECK(last_write.contains(bucket), "{} reduces what nobody writes",
                    step.program.value(bucket).name);
        behind.emplace(last_write.at(bucket), id);
    }
    std::vector<OpId> merged;
    for (std::size_t i = 0; i < order.size(); ++i) {
        merged.push_back(order[i]);
        const auto [begin, end] = behind.equal_range(i);
        for (auto next = begin; next != end; ++next) merged.push_back(next->second);
    }
    return merged;
}

Program assemble(const StepOps& step, const std::vector<OpId>& order) {
    Program program = step.program;
    program.ops.clear();
    std::vector<OpId> renumbered(step.program.ops.size(), OpId(-1));
    std::map<std::string, std::int32_t> issued_collectives;
    std::map<std::pair<OpKind, Rank>, std::int32_t> issued_messages;
    for (const auto id : order) {
        Op op = step.program.op(id);
        auto& new_id = renumbered[static_cast<std::size_t>(id.value())];
        ATOLL_CHECK_EQ(new_id, OpId(-1), "{} is scheduled twice", describe(op));
        op.id = new_id = OpId(static_cast<std::int32_t>(program.ops.size()));
        if (auto* collective = std::get_if<CollectiveAttributes>(&op.attributes))
            collective->sequence = issued_collectives[collective->group]++;
        if (auto* message = std::get_if<PointToPointAttributes>(&op.attributes))
            message->sequence = issued_messages[{op.kind, message->peer}]++;
        program.ops.push_back(std::move(op));
    }
    for (const auto& op : step.program.ops)
        ATOLL_CHECK_NE(renumbered[static_cast<std::size_t>(op.id.value())], OpId(-1), "{} is not scheduled",
                       describe(op));
    for (auto& op : program.ops)
        for (auto& earlier : op.after) earlier = renumbered[static_cast<std::size_t>(earlier.value())];
    return program;
}

Program serial_schedule(const StepOps& step) {
    std::vector<OpId> order;
    for (std::int32_t micro_batch = 0; micro_batch < step.micro_batches; ++micro_batch) {
        for (std::int32_t layer = kEmbeddingLayer; layer <= step.layers; ++layer)
            append(order, step.ops_of({Phase::forward, layer, micro_batch}));
        for (std::int32_t layer = step.layers; layer >= kEmbeddingLayer; --layer)
            append(order, backward_ops(step, layer, micro_batch));
    }
    order = insert_reductions(step, order);
    append(order, step.ops_of({Phase::optimizer}));
    return assemble(step, order);
}

}  // namespace atl
