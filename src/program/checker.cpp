#include "program/checker.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "program/check_values.h"
#include "program/dependencies.h"
#include "program/execution_graph.h"
#include "program/text.h"

namespace atl {
namespace {

std::string at(const Program& program, const Op& op) {
    return fmt::format("rank {}: {}", program.rank, describe(op));
}

// ---- collectives ----

std::vector<const Op*> collectives_of(const Program& program, const std::string& group) {
    std::vector<const Op*> ops;
    for (const auto& op : program.ops)
        if (const auto* attributes = std::get_if<CollectiveAttributes>(&op.attributes))
            if (attributes->group == group) ops.push_back(&op);
    return ops;
}

// What must be the same on every member: kind, elements, dtype, resource.
std::string matching_facts(const Program& program, const Op& op) {
    // The whole, not the piece of an all-gather, which may differ between members.
    const Value& value = program.value(op.kind == OpKind::all_gather ? op.writes.front() : op.reads.front());
    return fmt::format("{} of {} {} on {}", name(op.kind), element_count(value.shape), name(value.dtype),
                       name(op.resource));
}

void check_numbering(const Program& program, const std::string& group, std::vector<std::string>& problems) {
    std::int32_t expected = 0;
    for (const auto* op : collectives_of(program, group)) {
        const auto found = std::get<CollectiveAttributes>(op->attributes).sequence;
        if (found != expected)
            problems.push_back(fmt::format("{}: is number {} of group {}; in issue order it is number {}",
                                           at(program, *op), found, group, expected));
        ++expected;
    }
}

void check_match(const Program& a, const Program& b, const std::string& group,
                 std::vector<std::string>& problems) {
    const auto ours = collectives_of(a, group);
    const auto theirs = collectives_of(b, group);
    for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
        if (i >= ours.size() || i >= theirs.size()) {
            const bool lacks_b = i < ours.size();
            problems.push_back(fmt::format("{}: rank {} has no collective number {} of group {}",
                                           lacks_b ? at(a, *ours[i]) : at(b, *theirs[i]),
                                           lacks_b ? b.rank : a.rank, i, group));
            return;
        }
        const auto mine = matching_facts(a, *ours[i]);
        const auto other = matching_facts(b, *theirs[i]);
        if (mine != other)
            problems.push_back(fmt::format("{}: {} meets {} ({}) as number {} of group {}", at(b, *theirs[i]),
                                           other, at(a, *ours[i]), mine, i, group));
    }
}

void check_collectives(const std::vector<Program>& programs, std::vector<std::string>& problems) {
    std::map<Rank, const Program*> by_rank;
    for (const auto& program : programs)
        if (!by_rank.emplace(program.rank, &program).second)
            problems.push_back(fmt::format("rank {}: has two programs", program.rank));
    for (const auto& program : programs) {
        for (const auto& op : program.ops)
            if (const auto* attributes = std::get_if<CollectiveAttributes>(&op.attributes))
                if (!program.groups.contains(attributes->group))
                    problems.push_back(
                        fmt::format("{}: no group is named \"{}\"", at(program, op), attributes->group));
        for (const auto& [group, members] : program.groups) {
            check_numbering(program, group, problems);
            if (!std::ranges::is_sorted(members) || !std::ranges::binary_search(members, program.rank))
                problems.push_back(
                    fmt::format("rank {}: the members of group {}, {}, are not sorted or lack this rank",
                                program.rank, group, fmt::join(members, " ")));
            for (const auto member : members) {
                if (member <= program.rank) continue;
                const auto other = by_rank.find(member);
                if (other == by_rank.end() || !other->second->groups.contains(group) ||
                    other->second->groups.at(group) != members)
                    problems.push_back(fmt::format("rank {}: rank {} doesn't have the same group {}",
                                                   program.rank, member, group));
                else if (program.rank == members.front())
                    check_match(program, *other->second, group, problems);
            }
        }
    }
}

// ---- deadlock ----

void check_cycles(const std::vector<Program>& programs, std::vector<std::string>& problems) {
    const auto graph = make_execution_graph(programs);
    std::vector<std::string> names;
    for (const auto node : graph.find_cycle()) {
        const auto& [program, op] = graph.nodes[node].ops.front();
        auto name = at(programs[program], programs[program].op(op));
        if (names.empty() || names.back() != name)
            names.push_back(std::move(name));  // a post, then its transfer
    }
    if (!names.empty())
        problems.push_back(fmt::format("these ops wait for one another: {}", fmt::join(names, " -> ")));
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
    check_collectives(programs, problems);
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
