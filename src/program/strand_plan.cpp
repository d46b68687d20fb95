#include "program/strand_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/hash.h"
#include "program/schedule.h"
#include "program/schedule_generators.h"

namespace atl {
namespace {

Work without_micro_batch(Work work) {
    work.micro_batch = 0;
    return work;
}

// The pair's ops in the plan's order.
std::vector<OpId> in_order(const PlannedPair& pair, const LayerOps& first, const LayerOps& second) {
    std::vector<OpId> ops;
    for (const auto& layer : first) ops.insert(ops.end(), layer.begin(), layer.end());
    const auto first_ops = std::ssize(ops);
    for (const auto& layer : second) ops.insert(ops.end(), layer.begin(), layer.end());
    if (first_ops != pair.first_ops || std::ssize(ops) - first_ops != pair.second_ops)
        throw UserError(
            fmt::format("[plan] {} and {} have {} and {} ops, in the plan {} and {}: it is for another model",
                        print(pair.first), print(pair.second), first_ops, std::ssize(ops) - first_ops,
                        pair.first_ops, pair.second_ops));
    std::vector<OpId> order;
    for (const auto number : pair.order) order.push_back(ops.at(static_cast<std::size_t>(number)));
    return order;
}

}  // namespace

const PlannedPair* StrandPlan::find(const Slot& slot) const {
    const auto found = std::ranges::find_if(pairs, [&](const PlannedPair& pair) {
        return pair.first == without_micro_batch(slot.first) &&
               pair.second == without_micro_batch(*slot.second);
    });
    return found == pairs.end() ? nullptr : &*found;
}

std::string StrandPlan::hash() const {
    std::string text = interleaves ? "interleaved" : "serial";
    if (halves_micro_batches) text += " in halves";
    for (const auto& pair : pairs)
        text += fmt::format("\n{} {} {} {}: {}", print(pair.first), print(pair.second), pair.first_ops,
                            pair.second_ops, fmt::join(pair.order, " "));
    return xxh3_128(std::as_bytes(std::span(text))).hex();
}

StrandPlan serial_plan(std::string reason) {
    return {.interleaves = false, .reason = std::move(reason)};
}

Program planned_program(const StepOps& step, const ScheduleTable& table, const StrandPlan& plan) {
    if (!plan.interleaves) {
        if (table.pipeline.ranks == 1) return serial_schedule(step);
        return expand(step, {table.pipeline, table.micro_batches, without_pairs(table.ranks)});
    }
    return expand(
        step, table,
        [&](const Program& program, const Slot& slot, const LayerOps& first, const LayerOps& second) {
            const PlannedPair* pair = plan.find(slot);
            return pair == nullptr ? interleave(program, first, second) : in_order(*pair, first, second);
        });
}

}  // namespace atl
