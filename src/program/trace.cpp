#include "program/trace.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "program/text.h"

namespace atl {
namespace {

using nlohmann::json;

json named(const char* what, std::int64_t process, std::optional<std::int64_t> thread, std::string name) {
    json event{{"ph", "M"}, {"name", what}, {"pid", process}, {"args", {{"name", std::move(name)}}}};
    if (thread) event["tid"] = *thread;
    return event;
}

json arguments(const Op& op) {
    json values{{"op", op.id.value()}};
    if (op.layer >= 0) values["layer"] = op.layer;
    if (op.micro_batch >= 0) values["micro_batch"] = op.micro_batch;
    if (op.strand != 0) values["strand"] = op.strand;
    if (op.flops > 0) values["flops"] = op.flops;
    if (op.bytes > 0) values["bytes"] = op.bytes;
    if (const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes)) {
        values["group"] = collective->group;
        values["sequence"] = collective->sequence;
    }
    if (const auto* message = std::get_if<PointToPointAttributes>(&op.attributes)) {
        values["peer"] = message->peer.value();
        values["sequence"] = message->sequence;
    }
    return values;
}

// One end of the arrow from a send to the receive that it meets.
json arrow(const Program& program, const Op& op, const json& slice, const std::string& label) {
    const auto& message = std::get<PointToPointAttributes>(op.attributes);
    const bool sends = op.kind == OpKind::send;
    const auto from = sends ? program.rank : message.peer, to = sends ? message.peer : program.rank;
    json event{
        {"ph", sends ? "s" : "f"}, {"name", "message"},
        {"cat", "message"},        {"id", fmt::format("{}/{}/{}/{}", label, from, to, message.sequence)},
        {"pid", slice["pid"]},     {"tid", slice["tid"]},
        {"ts", slice["ts"]}};
    if (!sends) event["bp"] = "e";
    return event;
}

}  // namespace

std::string chrome_trace(const std::vector<Program>& programs, const std::vector<StepTiming>& timings) {
    json events = json::array();
    std::int64_t process = 0;
    for (const auto& timing : timings) {
        ATOLL_CHECK_EQ(timing.ops.size(), programs.size(), "timing {}", timing.label);
        for (std::size_t i = 0; i < programs.size(); ++i, ++process) {
            const auto& program = programs[i];
            ATOLL_CHECK_EQ(timing.ops[i].size(), program.ops.size(), "timing {}", timing.label);
            events.push_back(
                named("process_name", process, {}, fmt::format("{} rank {}", timing.label, program.rank)));
            std::array<bool, kResources> is_named{};
            for (const auto& op : program.ops) {
                const auto thread = static_cast<std::size_t>(op.resource);
                if (!std::exchange(is_named[thread], true))
                    events.push_back(named("thread_name", process, static_cast<std::int64_t>(thread),
                                           std::string(name(op.resource))));
                const auto& time = timing.ops[i][static_cast<std::size_t>(op.id.value())];
                json slice{{"ph", "X"},
                           {"name", name(op.kind)},
                           {"cat", name(op.resource)},
                           {"pid", process},
                           {"tid", thread},
                           {"ts", time.start_seconds * 1e6},
                           {"dur", (time.end_seconds - time.start_seconds) * 1e6},
                           {"args", arguments(op)}};
                if (is_point_to_point(op.kind)) events.push_back(arrow(program, op, slice, timing.label));
                events.push_back(std::move(slice));
            }
        }
    }
    return json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace atl
