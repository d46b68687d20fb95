#include "program/schedule.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "program/reorder.h"
#include "program/schedule_parts.h"

namespace atl {
namespace {

void append(std::vector<OpId>& order, const std::vector<OpId>& ops) {
    order.insert(order.end(), ops.begin(), ops.end());
}

}  // namespace

std::vector<OpId> backward_ops(const StepOps& step, std::int32_t layer, std::int32_t micro_batch) {
    const auto weights = step.ops_of({StepPart::backward_weight, layer, micro_batch});
    auto ops = step.ops_of({StepPart::backward_input, layer, micro_batch});
    append(ops, weights);
    std::ranges::sort(ops);
    const auto collective = [&](OpId id) { return is_collective(step.program.op(id).kind); };
    std::vector<OpId> order, held_back;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const bool is_weight = std::ranges::binary_search(weights, ops[i]);
        (is_weight ? held_back : order).push_back(ops[i]);
        const bool gap_ahead =
            std::ranges::any_of(ops.begin() + static_cast<std::ptrdiff_t>(i) + 1, ops.end(), collective);
        if (!collective(ops[i]) && gap_ahead) continue;
        append(order, held_back);
        held_back.clear();
    }
    return order;
}

std::vector<OpId> insert_reductions(const StepOps& step, const std::vector<OpId>& order) {
    std::map<ValueId, std::size_t> last_write;  // [base]: position in order
    for (std::size_t i = 0; i < order.size(); ++i)
        for (const auto id : step.program.op(order[i]).writes) last_write[step.program.resolve(id).base] = i;
    std::multimap<std::size_t, OpId> behind;
    for (const auto id : step.ops_of({StepPart::reduction})) {
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

Program serial_schedule(const StepOps& step) {
    std::vector<OpId> order;
    for (std::int32_t micro_batch = 0; micro_batch < step.micro_batches; ++micro_batch) {
        for (std::int32_t layer = kEmbeddingLayer; layer <= step.layers; ++layer)
            append(order, step.ops_of({StepPart::forward, layer, micro_batch}));
        for (std::int32_t layer = step.layers; layer >= kEmbeddingLayer; --layer)
            append(order, backward_ops(step, layer, micro_batch));
    }
    order = insert_reductions(step, order);
    append(order, step.ops_of({StepPart::optimizer}));
    return reordered(step.program, order);
}

}  // namespace atl
