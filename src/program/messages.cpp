#include "program/messages.h"

#include <algorithm>

#include "core/check.h"

namespace atl {
namespace {

// Backwards and input gradients send and take up the same.
Work as_message(Work work) {
    if (work.kind == WorkKind::backward) work.kind = WorkKind::input_gradient;
    return work;
}

// The stage that takes up what this work makes, if it lies on another rank.
std::optional<std::int32_t> receiver_of(const Work& work, const PipelineShape& pipeline) {
    if (work.kind == WorkKind::weight_gradient) return std::nullopt;
    const auto stage = work.stage + (work.kind == WorkKind::forward ? 1 : -1);
    if (stage < 0 || stage >= pipeline.stages()) return std::nullopt;
    if (pipeline.rank_of(stage) == pipeline.rank_of(work.stage)) return std::nullopt;
    return stage;
}

// What must be done elsewhere before `work` can start: the same on the stage before or behind.
std::optional<Work> source_of(const Work& work, const PipelineShape& pipeline) {
    if (work.kind == WorkKind::weight_gradient) return std::nullopt;
    auto source = as_message(work);
    source.stage += work.kind == WorkKind::forward ? -1 : 1;
    if (source.stage < 0 || source.stage >= pipeline.stages()) return std::nullopt;
    if (pipeline.rank_of(source.stage) == pipeline.rank_of(work.stage)) return std::nullopt;
    return source;
}

}  // namespace

Messages::Messages(const ScheduleTable& table, std::int32_t rank)
    : pipeline_(table.pipeline), rank_(rank), peers_(table.ranks.size()) {
    for (std::size_t peer = 0; peer < table.ranks.size(); ++peer)
        for (std::size_t slot = 0; slot < table.ranks[peer].size(); ++slot) {
            const auto add = [&](const Work& work) {
                const auto receiver = receiver_of(work, pipeline_);
                if (receiver && pipeline_.rank_of(*receiver) == rank_)
                    peers_[peer].incoming.emplace(as_message(work), slot);
                const auto source = source_of(work, pipeline_);
                if (source && pipeline_.rank_of(source->stage) == rank_)
                    peers_[peer].outgoing.push_back({*source, slot, {}, 0});
            };
            add(table.ranks[peer][slot].first);
            if (table.ranks[peer][slot].second) add(*table.ranks[peer][slot].second);
        }
}

Messages::Outgoing& Messages::outgoing(const Work& work) {
    const auto receiver = receiver_of(work, pipeline_);
    ATOLL_CHECK(receiver, "{} sends to nobody", print(work));
    auto& list = peers_[static_cast<std::size_t>(pipeline_.rank_of(*receiver))].outgoing;
    const auto found = std::ranges::find(list, as_message(work), &Outgoing::work);
    ATOLL_CHECK(found != list.end(), "{} sends what nobody takes up", print(work));
    return *found;
}

void Messages::expect_send(const Work& work) {
    ++outgoing(work).expected;
}

std::vector<OpId> Messages::send(const Work& work, OpId op) {
    outgoing(work).ready.push_back(op);
    std::vector<OpId> released;
    for (auto& peer : peers_)
        while (peer.issued < peer.outgoing.size()) {
            const auto& next = peer.outgoing[peer.issued];
            if (next.expected == 0 || next.ready.size() < next.expected) break;
            released.insert(released.end(), next.ready.begin(), next.ready.end());
            ++peer.issued;
        }
    return released;
}

bool Messages::all_sent() const {
    return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.issued == peer.outgoing.size(); });
}

std::optional<OpId> Messages::send_proven_received_by(const Work& work) const {
    const auto source = source_of(work, pipeline_);
    if (!source) return std::nullopt;
    const auto& peer = peers_[static_cast<std::size_t>(pipeline_.rank_of(source->stage))];
    const auto sent_in = peer.incoming.at(*source);
    std::optional<OpId> newest;
    for (std::size_t i = 0; i < peer.issued && peer.outgoing[i].taken_up_slot < sent_in; ++i)
        newest = peer.outgoing[i].ready.back();
    return newest;
}

}  // namespace atl
