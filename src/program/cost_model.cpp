#include "program/cost_model.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

double communication_steps(const Program& program, const Op& op) {
    const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes);
    if (collective == nullptr) return 1;
    const auto group = program.groups.find(collective->group);
    ATOLL_CHECK(group != program.groups.end(), "no group is named {}", collective->group);
    const auto others = static_cast<double>(group->second.size()) - 1;
    const bool goes_round_twice = op.kind == OpKind::all_reduce || op.kind == OpKind::all_reduce_max;
    return goes_round_twice ? 2 * others : others;
}

}  // namespace

double predicted_seconds(const Program& program, const Op& op, const MachineRates& rates) {
    const auto bytes = static_cast<double>(op.bytes);
    const auto link = [&](const LinkRate& rate) {
        return communication_steps(program, op) * rate.latency_seconds + bytes / rate.bytes_per_second;
    };
    switch (op.resource) {
        case Resource::link_intra:
            return link(rates.link_intra);
        case Resource::link_inter:
            return link(rates.link_inter);
        case Resource::link_wan:
            return link(rates.link_wan);
        case Resource::send:
        case Resource::receive:
            return link(rates.point_to_point);
        case Resource::copy:
            return rates.op_overhead_seconds + bytes / rates.copy_bytes_per_second;
        case Resource::compute:
        case Resource::host:
            break;
    }
    return rates.op_overhead_seconds +
           std::max(op.flops / rates.flops_per_second, bytes / rates.memory_bytes_per_second);
}

std::vector<double> predicted_seconds(const Program& program, const MachineRates& rates) {
    std::vector<double> seconds;
    for (const auto& op : program.ops) seconds.push_back(predicted_seconds(program, op, rates));
    return seconds;
}

}  // namespace atl
