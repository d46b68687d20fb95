#include "engine/bound_program.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <omp.h>

#include <algorithm>
#include <set>

#include "engine/bind_communication.h"
#include "program/dependencies.h"

namespace atl {
namespace {

// What comes first of a micro-batch is forward, and what follows the loss, or begins with a backward op where the loss
// is another rank's, is backward; what belongs to no micro-batch is the optimizer. Recomputation counts as backward.
std::vector<StepShare> shares_of(const Program& program) {
    std::set<std::int32_t> past_loss;
    std::vector<StepShare> shares;
    for (const Op& op : program.ops) {
        if (name(op.kind).find("_backward") != std::string_view::npos) past_loss.insert(op.micro_batch);
        if (is_collective(op.kind) || is_point_to_point(op.kind)) {
            shares.push_back(StepShare::communication);
        } else if (op.micro_batch < 0) {
            shares.push_back(StepShare::optimizer);
        } else {
            shares.push_back(past_loss.contains(op.micro_batch) ? StepShare::backward : StepShare::forward);
        }
        if (op.kind == OpKind::cross_entropy || op.kind == OpKind::cross_entropy_parallel)
            past_loss.insert(op.micro_batch);
    }
    return shares;
}

// Everything an op waits for that its own queue doesn't see to. Ops of a resource end in order, so the last one stands
// for all.
std::vector<OpId> last_of_each_resource(const Program& program, const Op& op,
                                        std::initializer_list<const std::vector<OpId>*> edges) {
    std::map<Resource, OpId> last;
    for (const auto* list : edges) {
        for (const OpId earlier : *list) {
            const Resource resource = program.op(earlier).resource;
            if (resource == op.resource && !posts_ahead(resource)) continue;
            OpId& newest = last.try_emplace(resource, earlier).first->second;
            newest = std::max(newest, earlier);
        }
    }
    std::vector<OpId> waits;
    for (const auto& [resource, newest] : last) waits.push_back(newest);
    return waits;
}

}  // namespace

BoundProgram::BoundProgram(const Program& program, const ProgramMemory& memory,
                           const ExecutorOptions& options)
    : ops(program.ops.size()) {
    at::set_num_threads(options.threads);
    omp_set_num_threads(options.threads);
    const c10::InferenceMode guard;
    const auto data = data_edges(program);
    const auto extra = mode_edges(program, options.mode);
    const auto shares = shares_of(program);
    for (const Op& op : program.ops) {
        const auto index = static_cast<std::size_t>(op.id.value());
        BoundOp& bound = ops[index];
        bound.op = &op;
        bound.share = shares[index];
        switch (op.resource) {
            case Resource::compute:
                bound.call = bind_op(BoundOperands(program, memory, op, options.threads));
                break;
            case Resource::link_intra:
            case Resource::link_inter:
                bound.call = bind_collective(program, memory, op, options);
                break;
            case Resource::send:
            case Resource::receive: {
                BoundMessage message = bind_message(program, memory, op, options);
                bound.post = std::move(message.post);
                bound.call = std::move(message.wait);
                break;
            }
            default:
                ATOLL_CHECK(false, "no {} queue on processors", name(op.resource));
        }
        bound.waits = last_of_each_resource(program, op, {&data[index], &op.after, &extra[index]});
        for (const OpId other : bound.waits) ops[static_cast<std::size_t>(other.value())].is_awaited = true;
        queues[op.resource].push_back(&bound);
    }
}

}  // namespace atl
