#include "island/rank_times.h"

#include <algorithm>
#include <cstring>

namespace atl {

StepTimesOfRanks gather_step_times(const Island& island, const IslandLinks& links, Milliseconds timeout) {
    std::vector<double> mine{seconds(island.step_begin().time_since_epoch())};
    for (const OpTime& op : island.op_times()) mine.insert(mine.end(), {op.start_seconds, op.end_seconds});
    const auto texts = links.world->all_gather(
        {reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double)}, timeout);
    std::vector<std::vector<double>> all;
    for (const std::string& text : texts) {
        std::memcpy(all.emplace_back(text.size() / sizeof(double)).data(), text.data(), text.size());
    }
    const double first = std::ranges::min(all, {}, [](const auto& rank) { return rank.front(); }).front();
    StepTimesOfRanks step;
    for (const auto& rank : all) {
        auto& ops = step.emplace_back();
        const double begin = rank.front() - first;
        for (std::size_t i = 1; i + 1 < rank.size(); i += 2)
            ops.push_back({begin + rank[i], begin + rank[i + 1]});
    }
    return step;
}

double end_of(const StepTimesOfRanks& step) {
    double end = 0;
    for (const auto& rank : step)
        for (const OpTime& op : rank) end = std::max(end, op.end_seconds);
    return end;
}

std::vector<std::vector<double>> durations(const std::vector<Program>& programs, const ExecutionGraph& graph,
                                           const StepTimesOfRanks& step, Arrival arrival) {
    std::vector<std::vector<double>> taken;
    for (const Program& program : programs) taken.emplace_back(program.ops.size(), 0.0);
    for (const ExecutionNode& node : graph.nodes) {
        if (node.kind == NodeKind::post || node.kind == NodeKind::end) continue;
        double start = 0;
        double starts = 0;
        double end = 0;
        for (const auto& [program, op] : node.ops) {
            const OpTime& time = step[program][static_cast<std::size_t>(op.value())];
            start = std::max(start, time.start_seconds);
            starts += time.start_seconds;
            if (programs[program].op(op).kind != OpKind::send) end = std::max(end, time.end_seconds);
        }
        const auto& [first_program, first_op] = node.ops.front();
        const bool is_of_equals = programs[first_program].op(first_op).resource == Resource::link_intra;
        if (is_of_equals && arrival == Arrival::average)
            start = starts / static_cast<double>(node.ops.size());
        for (const auto& [program, op] : node.ops)
            taken[program][static_cast<std::size_t>(op.value())] = std::max(end - start, 0.0);
    }
    return taken;
}

SerialAccounts account_for(const std::vector<Program>& programs, const ExecutionGraph& graph,
                           const StepTimesOfRanks& step) {
    const auto taken = durations(programs, graph, step, Arrival::last);
    SerialAccounts accounts(programs.size());
    for (std::size_t rank = 0; rank < programs.size(); ++rank)
        for (const Op& op : programs[rank].ops) {
            if (op.resource == Resource::send) continue;
            const auto index = static_cast<std::size_t>(op.id.value());
            const double seconds = taken[rank][index];
            const bool computes = op.resource == Resource::compute;
            SerialAccount& mine = accounts[rank];
            (computes ? mine.compute_seconds : mine.communication_seconds) += seconds;
            if (is_collective(op.kind))
                mine.waiting_seconds +=
                    std::max(0.0, step[rank][index].end_seconds - step[rank][index].start_seconds - seconds);
            if (op.layer < 0 || op.micro_batch < 0) continue;
            mine.layer_seconds += seconds;
            if (!computes) mine.layer_communication_seconds += seconds;
        }
    return accounts;
}

}  // namespace atl
