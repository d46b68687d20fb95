#include "engine/bind_communication.h"

namespace atl {

BoundCall bind_collective(const Program& program, const ProgramMemory& memory, const Op& op,
                          const ExecutorOptions& options) {
    const auto& attributes = std::get<CollectiveAttributes>(op.attributes);
    const auto group = options.groups.find(attributes.group);
    ATOLL_CHECK(group != options.groups.end(), "no collective for group '{}'", attributes.group);
    IslandCollective* collective = group->second;
    ATOLL_CHECK_EQ(static_cast<std::int64_t>(collective->size()),
                   static_cast<std::int64_t>(program.groups.at(attributes.group).size()));
    const BufferView read = memory.view(op.reads.at(0));
    const BufferView written = memory.view(op.writes.at(0));
    const Milliseconds timeout = options.collective_timeout;
    const auto rows = [&](ValueId whole) { return program.value(whole).shape.at(0); };
    switch (op.kind) {
        case OpKind::all_reduce:
            return [=] { collective->all_reduce(written, timeout); };
        case OpKind::all_reduce_max:
            return [=] { collective->all_reduce_max(written, timeout); };
        case OpKind::all_gather:
            return [=, rows = rows(op.writes.at(0))] {
                collective->all_gather_rows(read, written, rows, timeout);
            };
        case OpKind::reduce_scatter:
            return [=, rows = rows(op.reads.at(0))] {
                collective->reduce_scatter_rows(read, written, rows, timeout);
            };
        case OpKind::broadcast:
            return [=] { collective->broadcast(written, Rank(0), timeout); };
        default:
            break;
    }
    ATOLL_CHECK(false, "{} is no collective", name(op.kind));
    return {};
}

BoundMessage bind_message(const Program& program, const ProgramMemory& memory, const Op& op,
                          const ExecutorOptions& options) {
    PointToPoint* office = options.point_to_point;
    ATOLL_CHECK(office != nullptr, "op {} {}: no point-to-point to send it with", op.id, name(op.kind));
    ATOLL_CHECK_EQ(office->rank(), program.rank);
    const Rank peer = std::get<PointToPointAttributes>(op.attributes).peer;
    const Milliseconds timeout = options.collective_timeout;
    if (op.kind == OpKind::send) {
        return {[=, view = memory.view(op.reads.at(0))] { office->post_send(view, peer); },
                [=] { office->wait_send(peer, timeout); }};
    }
    ATOLL_CHECK(op.kind == OpKind::receive, "{} is no message", name(op.kind));
    return {[=, view = memory.view(op.writes.at(0))] { office->post_receive(view, peer); },
            [=] { office->wait_receive(peer, timeout); }};
}

}  // namespace atl
