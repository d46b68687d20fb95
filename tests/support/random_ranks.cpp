#include "support/random_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "support/random_program.h"

namespace atl::test {
namespace {

// Makes what happens on all ranks in one order: each rank's list is its part of it, so any mode can follow it.
class World {
  public:
    explicit World(const RandomRanks& options)
        : random_(options.seed), rows_(1 + random_.below(9)), width_(1 + random_.below(5)) {
        groups_["world"] = {Resource::link_inter, {}};
        for (std::int32_t r = 0; r < options.ranks; ++r) groups_["world"].members.push_back(Rank(r));
        if (options.ranks > 2) groups_["tp"] = {Resource::link_intra, {Rank(0), Rank(1)}};
        for (std::int32_t r = 0; r < options.ranks; ++r) {
            Member& member = members_.emplace_back(Member{ProgramBuilder(Rank(r))});
            for (const auto& [name, group] : groups_) {
                if (std::ranges::binary_search(group.members, Rank(r)))
                    member.builder.add_group(name, group.members);
            }
            for (const char* name : {"x", "y"})
                member.readable.push_back(add_value(member, Role::input, {rows_, width_}, name));
            member.gamma = add_value(member, Role::input, {width_}, "gamma");
        }
        for (std::int32_t i = 0; i < options.events; ++i) event();
    }

    std::vector<Program> take() {
        while (!under_way_.empty()) receive();
        std::vector<Program> programs;
        for (Member& member : members_) {
            ValueId sum = recent(member);
            for (int i = 0; i < 3; ++i) sum = add(member, sum, recent(member), Role::activation);
            add(member, sum, recent(member), Role::output);
            programs.push_back(member.builder.take());
        }
        return programs;
    }

  private:
    struct Group {
        Resource resource = Resource::link_inter;
        std::vector<Rank> members;
        std::int32_t collectives = 0;
    };
    struct Member {
        ProgramBuilder builder;
        std::vector<ValueId> readable;  // [rows, width]
        ValueId gamma;
        std::map<std::string, ValueId> pieces;  // by group: the newest
        std::int32_t newest_sent = -1;          // values up to here are not sent again
    };
    struct Message {
        std::int32_t from = 0;
        std::int32_t to = 0;
        std::int32_t sequence = 0;
    };

    ValueId add_value(Member& member, Role role, Shape shape, std::string name = "") {
        if (name.empty()) name = fmt::format("v{}", member.builder.program().values.size());
        return member.builder.add(Value{.name = std::move(name), .shape = std::move(shape), .role = role});
    }
    ValueId recent(Member& member) {
        const auto count = std::min<std::int64_t>(std::ssize(member.readable), 5);
        return member
            .readable[static_cast<std::size_t>(std::ssize(member.readable) - 1 - random_.below(count))];
    }
    ValueId add(Member& member, ValueId a, ValueId b, Role role) {
        const ValueId sum = add_value(member, role, member.builder.program().value(a).shape,
                                      role == Role::output ? "out" : "");
        member.builder.add(Op{.kind = OpKind::add, .reads = {a, b}, .writes = {sum}});
        return sum;
    }
    // Keeps numbers near one.
    ValueId normalize(Member& member, ValueId x) {
        const ValueId y = add_value(member, Role::activation, {rows_, width_});
        const ValueId rstd = add_value(member, Role::activation, {rows_});
        member.builder.add(Op{.kind = OpKind::rms_norm,
                              .attributes = NormAttributes{},
                              .reads = {x, member.gamma},
                              .writes = {y, rstd}});
        return y;
    }

    void event() {
        const auto choice = random_.below(10);
        if (choice < 5) {
            compute(random_member());
        } else if (choice < 7) {
            collective();
        } else if (choice < 9) {
            send();
        } else if (!under_way_.empty()) {
            receive();
        }
    }
    Member& random_member() {
        return members_[static_cast<std::size_t>(random_.below(std::ssize(members_)))];
    }

    void compute(Member& member) {
        const ValueId sum = add(member, recent(member), recent(member), Role::activation);
        member.readable.push_back(normalize(member, sum));
    }

    void collective() {
        auto chosen = groups_.begin();
        std::advance(chosen, random_.below(std::ssize(groups_)));
        auto& [name, group] = *chosen;
        const auto has_piece = [&, &name = name](Rank rank) {
            return members_[static_cast<std::size_t>(rank.value())].pieces.contains(name);
        };
        const auto kind =
            std::ranges::all_of(group.members, has_piece) && random_.one_in(2)
                ? OpKind::all_gather
                : std::vector{OpKind::all_reduce, OpKind::all_reduce_max,
                              OpKind::reduce_scatter}[static_cast<std::size_t>(random_.below(3))];
        for (const Rank rank : group.members) {
            Op op{.kind = kind,
                  .attributes = CollectiveAttributes{name, group.collectives},
                  .resource = group.resource};
            join(name, group, members_[static_cast<std::size_t>(rank.value())], op);
        }
        ++group.collectives;
    }

    // One member's part of a collective.
    void join(const std::string& name, const Group& group, Member& member, Op& op) {
        const auto place =
            std::ranges::find(group.members, member.builder.program().rank) - group.members.begin();
        const auto size = std::ssize(group.members);
        const std::int64_t piece_rows = rows_ * (place + 1) / size - rows_ * place / size;
        if (op.kind == OpKind::all_gather) {
            op.reads = {member.pieces.at(name)};
            op.writes = {add_value(member, Role::activation, {rows_, width_})};
            member.pieces.erase(name);
            member.readable.push_back(op.writes.front());
        } else if (op.kind == OpKind::reduce_scatter) {
            op.reads = {recent(member)};
            op.writes = {add_value(member, Role::activation, {piece_rows, width_})};
            member.pieces.insert_or_assign(name, op.writes.front());
        } else {  // in place: of something nobody else reads
            op.reads = {normalize(member, recent(member))};
            op.writes = {
                member.builder.add(Value{.name = fmt::format("v{}", member.builder.program().values.size()),
                                         .shape = {rows_, width_},
                                         .view_of = ValueView{op.reads.front(), 0}})};
            member.readable.push_back(op.writes.front());
        }
        member.builder.add(op);
    }

    void send() {
        Message message;
        message.from = static_cast<std::int32_t>(random_.below(std::ssize(members_)));
        message.to = static_cast<std::int32_t>(random_.below(std::ssize(members_) - 1));
        if (message.to >= message.from) ++message.to;
        Member& member = members_[static_cast<std::size_t>(message.from)];
        if (member.readable.back().value() <= member.newest_sent) return;
        member.newest_sent = member.readable.back().value();
        message.sequence = sent_[{message.from, message.to}]++;
        member.builder.add(Op{.kind = OpKind::send,
                              .attributes = PointToPointAttributes{Rank(message.to), message.sequence},
                              .reads = {member.readable.back()},
                              .resource = Resource::send});
        under_way_.push_back(message);
    }

    // Of some pair, its oldest message.
    void receive() {
        const Message& some = random_.any(under_way_);
        const auto oldest = std::ranges::find_if(under_way_, [&](const Message& message) {
            return message.from == some.from && message.to == some.to;
        });
        Member& member = members_[static_cast<std::size_t>(oldest->to)];
        const ValueId value = add_value(member, Role::activation, {rows_, width_});
        member.builder.add(Op{.kind = OpKind::receive,
                              .attributes = PointToPointAttributes{Rank(oldest->from), oldest->sequence},
                              .writes = {value},
                              .resource = Resource::receive});
        member.readable.push_back(value);
        under_way_.erase(oldest);
    }

    RandomChoice random_;
    std::int64_t rows_;
    std::int64_t width_;
    std::map<std::string, Group> groups_;
    std::vector<Member> members_;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> sent_;
    std::vector<Message> under_way_;  // sent and not received, oldest first
};

}  // namespace

std::vector<Program> random_rank_programs(const RandomRanks& options) {
    return World(options).take();
}

}  // namespace atl::test
