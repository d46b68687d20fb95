#include "program/reorder.h"

#include <map>

#include "core/check.h"
#include "program/text.h"

namespace atl {

Program reordered(Program program, const std::vector<OpId>& order) {
    const auto given = std::move(program.ops);
    program.ops.clear();
    std::vector<OpId> renumbered(given.size(), OpId(-1));
    std::map<std::string, std::int32_t> issued_collectives;
    std::map<std::pair<OpKind, Rank>, std::int32_t> issued_messages;
    for (const auto id : order) {
        Op op = given.at(static_cast<std::size_t>(id.value()));
        auto& new_id = renumbered[static_cast<std::size_t>(id.value())];
        ATOLL_CHECK_EQ(new_id, OpId(-1), "{} is scheduled twice", describe(op));
        op.id = new_id = OpId(static_cast<std::int32_t>(program.ops.size()));
        if (auto* collective = std::get_if<CollectiveAttributes>(&op.attributes))
            collective->sequence = issued_collectives[collective->group]++;
        if (auto* message = std::get_if<PointToPointAttributes>(&op.attributes))
            message->sequence = issued_messages[{op.kind, message->peer}]++;
        program.ops.push_back(std::move(op));
    }
    for (const auto& op : given)
        ATOLL_CHECK_NE(renumbered[static_cast<std::size_t>(op.id.value())], OpId(-1), "{} is not scheduled",
                       describe(op));
    for (auto& op : program.ops)
        for (auto& earlier : op.after) earlier = renumbered[static_cast<std::size_t>(earlier.value())];
    return program;
}

}  // namespace atl
