#include "program/checker.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "program/check_communication.h"
#include "program/check_values.h"
#include "program/dependencies.h"
#include "program/execution_graph.h"
#include "program/text.h"

namespace atl {
namespace {

std::string at(const Program& program, const Op& op) {
    return fmt::format("rank {}: {}", program.rank, describe(op));
}

// ---- deadlock ----

// The ops of a cycle, those that meet on several ranks together; empty if there is none.
std::vector<std::string> find_cycle(const std::vector<Program>& programs, ExecutionMode mode) {
    const auto graph = make_execution_graph(programs, mode);
    std::vector<std::string> names;
    for (const auto node : graph.find_cycle()) {
        if (graph.nodes[node].kind == NodeKind::end) continue;  // its transfer is named
        std::vector<std::string> together;
        for (const auto& [program, op] : graph.nodes[node].ops)
            together.push_back(at(programs[program], programs[program].op(op)));
        names.push_back(fmt::format("{}", fmt::join(together, " with ")));
    }
    return names;
}

// Whoever waits in barrier mode does so in serial mode.
void check_cycles(const std::vector<Program>& programs, std::vector<std::string>& problems) {
    const auto report = [&](const char* when, const std::vector<std::string>& names) {
        problems.push_back(
            fmt::format("{}these ops wait for one another: {}", when, fmt::join(names, " -> ")));
    };
    if (const auto names = find_cycle(programs, ExecutionMode::event); !names.empty())
        report("", names);
    else if (const auto serial = find_cycle(programs, ExecutionMode::serial); !serial.empty())
        report("run one op at a time, ", serial);
}

// ---- memory ----

struct Placed {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::string name;
    std::vector<OpId> touched_by;
    std::vector<OpId> written_by;
};

bool ordered(const HappensBefore& happens_before, const Placed& first, const Placed& second) {
    return std::ranges::all_of(first.touched_by, [&](OpId a) {
        return std::ranges::all_of(second.written_by, [&](OpId b) { return happens_before(a, b); });
    });
}

std::map<ArenaId, std::vector<Placed>> collect_placed(const Program& program, const Placement& placement) {
    std::vector<Placed> bases(program.values.size());
    std::map<ArenaId, std::vector<Placed>> arenas;
    for (const auto& op : program.ops) {
        for (const auto* ids : {&op.reads, &op.writes})
            for (const auto id : *ids)
                bases[static_cast<std::size_t>(program.resolve(id).base.value())].touched_by.push_back(op.id);
        for (const auto id : op.writes)
            bases[static_cast<std::size_t>(program.resolve(id).base.value())].written_by.push_back(op.id);
        if (op.scratch_bytes == 0) continue;
        const auto begin = placement.scratch_offset_bytes[static_cast<std::size_t>(op.id.value())];
        arenas[{Role::activation, Space::device}].push_back(
            {begin, begin + op.scratch_bytes, "its scratch", {op.id}, {op.id}});
    }
    for (const auto& value : program.values) {
        if (value.view_of) continue;
        const auto index = static_cast<std::size_t>(value.id.value());
        bases[index].begin = placement.value_offset_bytes[index];
        bases[index].end = bases[index].begin + value.bytes();
        bases[index].name = value.name;
        if (value.bytes() > 0) arenas[{value.role, value.space}].push_back(std::move(bases[index]));
    }
    return arenas;
}

std::string collision(const Program& program, const Placed& a, const Placed& b) {
    const auto who = [&](const Placed& placed) {
        return placed.touched_by.empty()
                   ? placed.name
                   : fmt::format("{} of {}", placed.name, describe(program.op(placed.touched_by.front())));
    };
    return fmt::format("rank {}: {} shares bytes {} to {} with {}, and neither surely ends before the other",
                       program.rank, who(a), std::max(a.begin, b.begin), std::min(a.end, b.end), who(b));
}

}  // namespace

std::vector<std::string> check_programs(const std::vector<Program>& programs) {
    std::vector<std::string> problems;
    bool sound = true;
    for (const auto& program : programs) {
        auto found = check_structure(program);
        if (found.empty())
            found = check_values(program);
        else
            sound = false;
        problems.insert(problems.end(), found.begin(), found.end());
    }
    if (!sound) return problems;  // what follows walks edges and signatures
    auto mismatches = check_communication(programs);
    problems.insert(problems.end(), mismatches.begin(), mismatches.end());
    check_cycles(programs, problems);
    return problems;
}

std::vector<std::string> check_placement(const Program& program, const Placement& placement) {
    std::vector<std::string> problems;
    const HappensBefore happens_before(program);
    for (auto& [arena, placed] : collect_placed(program, placement)) {
        const auto size = placement.arena_bytes.find(arena);
        std::ranges::sort(placed, {}, &Placed::begin);
        for (std::size_t i = 0; i < placed.size(); ++i) {
            const auto& a = placed[i];
            if (a.begin < 0 || a.begin % kPlacementAlignmentBytes != 0)
                problems.push_back(fmt::format("rank {}: {} lies at byte {}, which is not a multiple of {}",
                                               program.rank, a.name, a.begin, kPlacementAlignmentBytes));
            if (size == placement.arena_bytes.end() || a.end > size->second)
                problems.push_back(fmt::format("rank {}: {} ends at byte {}, behind the arena ({}, {})",
                                               program.rank, a.name, a.end, name(arena.role),
                                               name(arena.space)));
            for (std::size_t j = i + 1; j < placed.size() && placed[j].begin < a.end; ++j) {
                const auto& b = placed[j];
                const bool reused = arena.role == Role::activation;
                if (!reused || (!ordered(happens_before, a, b) && !ordered(happens_before, b, a)))
                    problems.push_back(collision(program, a, b));
            }
        }
    }
    return problems;
}

}  // namespace atl
