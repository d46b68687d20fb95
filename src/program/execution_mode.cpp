#include "program/execution_mode.h"

#include <algorithm>
#include <array>

namespace atl {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"event", "barrier", "serial"};

// The last op of each resource in the segments before an op's own: as ops of a resource end in order, the others have
// then ended too.
std::vector<std::vector<OpId>> barrier_edges(const Program& program) {
    const auto segments = segments_of(program);
    std::array<std::optional<OpId>, kResources> last;         // up to here
    std::array<std::optional<OpId>, kResources> last_before;  // in earlier segments
    std::vector<std::vector<OpId>> edges(program.ops.size());
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        if (i > 0 && segments[i] != segments[i - 1]) last_before = last;
        for (const auto& op : last_before)
            if (op) edges[i].push_back(*op);
        if (program.ops[i].kind != OpKind::send)
            last[static_cast<std::size_t>(program.ops[i].resource)] = program.ops[i].id;
    }
    return edges;
}

std::vector<std::vector<OpId>> serial_edges(const Program& program) {
    std::optional<OpId> last;
    std::vector<std::vector<OpId>> edges(program.ops.size());
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
        if (last) edges[i].push_back(*last);
        if (program.ops[i].kind != OpKind::send) last = program.ops[i].id;
    }
    return edges;
}

}  // namespace

std::string_view name(ExecutionMode mode) {
    return kNames.at(static_cast<std::size_t>(mode));
}

std::optional<ExecutionMode> execution_mode_from_name(std::string_view text) {
    const auto found = std::ranges::find(kNames, text);
    if (found == kNames.end()) return std::nullopt;
    return static_cast<ExecutionMode>(found - kNames.begin());
}

std::vector<std::int32_t> segments_of(const Program& program) {
    std::vector<std::int32_t> segments;
    std::int32_t segment = 0;
    bool computes = false;
    for (const Op& op : program.ops) {
        const bool communicates = is_collective(op.kind) || is_point_to_point(op.kind);
        if (communicates && computes) {
            ++segment;
            computes = false;
        }
        computes = computes || !communicates;
        segments.push_back(segment);
    }
    return segments;
}

std::vector<std::vector<OpId>> mode_edges(const Program& program, ExecutionMode mode) {
    switch (mode) {
        case ExecutionMode::barrier:
            return barrier_edges(program);
        case ExecutionMode::serial:
            return serial_edges(program);
        case ExecutionMode::event:
            break;
    }
    return std::vector<std::vector<OpId>>(program.ops.size());
}

}  // namespace atl
