#include "simulator/blocking_program.h"

#include <optional>

#include "program/reorder.h"

namespace atl {
namespace {

bool is_ring_hop(const Op& op) {
    const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes);
    return collective != nullptr && collective->group == "cp";
}

bool is_weight_gradient(const Op& op) {
    return op.kind == OpKind::linear_backward_weight;
}

// Orders of src/program hold weight gradients back until a collective stands before them, to run beside it. Back in
// their places: only the last one, whose layer's input gradient is being scattered, stays behind.
std::vector<OpId> order_of_emission(const Program& program) {
    std::vector<OpId> order;
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        const Op& op = program.ops[i];
        if (!is_collective(op.kind)) {
            order.push_back(op.id);
            continue;
        }
        auto end = i + 1;
        while (end < program.ops.size() && is_weight_gradient(program.ops[end])) ++end;
        if (end > i + 1 && op.kind == OpKind::reduce_scatter) --end;
        for (auto next = i + 1; next < end; ++next) order.push_back(program.ops[next].id);
        order.push_back(op.id);
        i = end - 1;
    }
    return order;
}

bool runs_beside_the_next(const Program& program, std::size_t index) {
    const Op& op = program.ops[index];
    if (op.kind == OpKind::send || is_ring_hop(op)) return true;
    return op.kind == OpKind::reduce_scatter && index + 1 < program.ops.size() &&
           is_weight_gradient(program.ops[index + 1]);
}

}  // namespace

Program with_blocking_communication(Program program) {
    const auto order = order_of_emission(program);
    program = reordered(std::move(program), order);
    std::optional<OpId> last;
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        auto& op = program.ops[i];
        if (last) op.after.push_back(*last);
        if (!runs_beside_the_next(program, i)) last = op.id;
    }
    return program;
}

}  // namespace atl
