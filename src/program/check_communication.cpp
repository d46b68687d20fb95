#include "program/check_communication.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "program/text.h"

namespace atl {
namespace {

class CommunicationCheck {
  public:
    explicit CommunicationCheck(const std::vector<Program>& programs) : programs_(programs) {
        for (const auto& program : programs)
            if (!by_rank_.emplace(program.rank, &program).second) report(program, "has two programs");
    }

    std::vector<std::string> run() {
        for (const auto& program : programs_) {
            check_ops(program);
            for (const auto& [group, members] : program.groups) check_group(program, group, members);
            for (const auto& other : programs_)
                if (other.rank != program.rank) check_messages(program, other);
        }
        return std::move(problems_);
    }

  private:
    void report(const Program& program, const std::string& problem) {
        problems_.push_back(fmt::format("rank {}: {}", program.rank, problem));
    }
    void report(const Program& program, const Op& op, const std::string& problem) {
        report(program, describe(op) + ": " + problem);
    }

    // Each op alone: its group or peer exists, it rides a link, and it is numbered in issue order.
    void check_ops(const Program& program) {
        std::map<std::string, std::int32_t> collectives;
        std::map<std::pair<OpKind, Rank>, std::int32_t> messages;
        const auto check_number = [&](const Op& op, std::int32_t found, std::int32_t expected,
                                      const std::string& of) {
            if (found != expected)
                report(
                    program, op,
                    fmt::format("is number {} of {}; in issue order it is number {}", found, of, expected));
        };
        for (const auto& op : program.ops) {
            if (const auto* collective = std::get_if<CollectiveAttributes>(&op.attributes)) {
                if (!program.groups.contains(collective->group))
                    report(program, op, fmt::format("no group is named \"{}\"", collective->group));
                check_number(op, collective->sequence, collectives[collective->group]++,
                             "group " + collective->group);
            }
            if (const auto* message = std::get_if<PointToPointAttributes>(&op.attributes)) {
                const bool sends = op.kind == OpKind::send;
                if (message->peer == program.rank || !by_rank_.contains(message->peer))
                    report(program, op, fmt::format("there is no other rank {}", message->peer));
                if (op.resource != (sends ? Resource::send : Resource::receive))
                    report(program, op, fmt::format("stands on {}", name(op.resource)));
                check_number(op, message->sequence, messages[{op.kind, message->peer}]++,
                             fmt::format("those {} rank {}", sends ? "to" : "from", message->peer));
            }
        }
    }

    // ---- collectives ----

    static std::vector<const Op*> collectives_of(const Program& program, const std::string& group) {
        std::vector<const Op*> ops;
        for (const auto& op : program.ops)
            if (const auto* attributes = std::get_if<CollectiveAttributes>(&op.attributes))
                if (attributes->group == group) ops.push_back(&op);
        return ops;
    }

    // What must be the same on every member: kind, elements, dtype, resource.
    static std::string facts_of(const Program& program, const Op& op) {
        // The whole, not the piece of an all-gather, which may differ between members.
        const Value& value =
            program.value(op.kind == OpKind::all_gather ? op.writes.front() : op.reads.front());
        return fmt::format("{} of {} {} on {}", name(op.kind), element_count(value.shape), name(value.dtype),
                           name(op.resource));
    }

    void check_group(const Program& program, const std::string& group, const std::vector<Rank>& members) {
        if (!std::ranges::is_sorted(members) || !std::ranges::binary_search(members, program.rank))
            report(program, fmt::format("the members of group {}, {}, are not sorted or lack this rank",
                                        group, fmt::join(members, " ")));
        for (const auto member : members) {
            if (member <= program.rank) continue;
            const auto other = by_rank_.find(member);
            if (other == by_rank_.end() || !other->second->groups.contains(group) ||
                other->second->groups.at(group) != members)
                report(program, fmt::format("rank {} doesn't have the same group {}", member, group));
            else if (program.rank == members.front())
                check_collectives(program, *other->second, group);
        }
    }

    void check_collectives(const Program& a, const Program& b, const std::string& group) {
        const auto ours = collectives_of(a, group);
        const auto theirs = collectives_of(b, group);
        for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
            if (i >= theirs.size())
                return report(
                    a, *ours[i],
                    fmt::format("rank {} has no collective number {} of group {}", b.rank, i, group));
            if (i >= ours.size())
                return report(
                    b, *theirs[i],
                    fmt::format("rank {} has no collective number {} of group {}", a.rank, i, group));
            const auto mine = facts_of(a, *ours[i]);
            const auto other = facts_of(b, *theirs[i]);
            const auto meets = [&](const std::string& how) {
                report(b, *theirs[i],
                       fmt::format("{} meets rank {}: {} ({}) as number {} of group {}", other, a.rank,
                                   describe(*ours[i]), how, i, group));
            };
            if (mine != other)
                meets(mine);
            else if (ours[i]->micro_batch != theirs[i]->micro_batch)
                meets("of another micro-batch");
        }
    }

    // ---- messages ----

    static std::vector<const Op*> messages_of(const Program& program, OpKind kind, Rank peer) {
        std::vector<const Op*> ops;
        for (const auto& op : program.ops)
            if (op.kind == kind && std::get<PointToPointAttributes>(op.attributes).peer == peer)
                ops.push_back(&op);
        return ops;
    }

    static std::string facts_of(const Value& value) {
        return fmt::format("{} {}", element_count(value.shape), name(value.dtype));
    }

    // Those from one rank to another.
    void check_messages(const Program& from, const Program& to) {
        const auto sends = messages_of(from, OpKind::send, to.rank);
        const auto receives = messages_of(to, OpKind::receive, from.rank);
        for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
            if (i >= receives.size())
                return report(from, *sends[i],
                              fmt::format("rank {} has no receive number {} from here", to.rank, i));
            if (i >= sends.size())
                return report(to, *receives[i],
                              fmt::format("rank {} has no send number {} to here", from.rank, i));
            check_message(from, *sends[i], to, *receives[i]);
        }
    }

    void check_message(const Program& from, const Op& send, const Program& to, const Op& receive) {
        const auto sent = facts_of(from.value(send.reads.front()));
        const auto expected = facts_of(to.value(receive.writes.front()));
        const auto meets = [&](const std::string& how) {
            report(to, receive, fmt::format("meets rank {}: {}, {}", from.rank, describe(send), how));
        };
        if (sent != expected) meets(fmt::format("which sends {}, not {}", sent, expected));
        if (send.micro_batch != receive.micro_batch) meets("which is of another micro-batch");
        // Boundaries of stages lie between neighbouring layers.
        const bool inside = send.layer >= 0 && receive.layer >= 0;
        if (inside && std::abs(send.layer - receive.layer) != 1) meets("whose layer is not the next");
    }

    const std::vector<Program>& programs_;
    std::map<Rank, const Program*> by_rank_;
    std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_communication(const std::vector<Program>& programs) {
    return CommunicationCheck(programs).run();
}

}  // namespace atl
