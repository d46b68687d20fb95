#include "worker/island_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "comm/island/gloo_collective.h"
#include "core/check.h"
#include "core/error.h"
#include "island/island_programs.h"

namespace atl {
namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

struct MasterAddress {
    std::string host;
    std::uint16_t port = 0;
};

MasterAddress master_address() {
    const MasterAddress master{environment("MASTER_ADDR"),
                               static_cast<std::uint16_t>(std::atoi(environment("MASTER_PORT").c_str()))};
    if (master.host.empty() || master.port == 0)
        throw UserError(
            "[worker] WORLD_SIZE is above 1: MASTER_ADDR and MASTER_PORT must say where rank 0 is");
    return master;
}

// What the other ranks reach this one at.
std::string own_address(const IslandMeeting& meeting) {
    const std::string interface = environment("GLOO_SOCKET_IFNAME");
    if (!interface.empty()) return address_of_interface(interface);
    if (!meeting.directory.empty()) return "127.0.0.1";
    const MasterAddress master = master_address();
    return local_address_towards(master.host, master.port);
}

}  // namespace

IslandConnections::IslandConnections(const IslandMeeting& meeting, const IslandOptions& options)
    : meeting_(meeting) {
    ATOLL_CHECK_EQ(options.parallel.ranks(), meeting.ranks, "ranks of the island and of its launcher");
    if (meeting.ranks == 1) return;
    address_ = own_address(meeting);
    const auto gloo = [&](const Group& group) {
        return GlooOptions{.group = group.name,
                           .rank = Rank(group.index),
                           .size = group.size,
                           .address = address_,
                           .connect_timeout = meeting_.timeout};
    };
    Group everybody{"orders", meeting.rank.value(), meeting.ranks, {}, 0};
    if (meeting.directory.empty()) {
        const MasterAddress master = master_address();
        everybody.host = master.host;
        everybody.port = master.port;
    }
    auto rendezvous = meet(everybody);
    world_ = make_gloo_collective(gloo(everybody), *rendezvous);
    everybody.name = "messages";
    messages_ = make_gloo_point_to_point(gloo(everybody), *rendezvous);
    if (has_stages(options.parallel)) {
        everybody.name = "step_messages";
        step_messages_ = make_gloo_point_to_point(gloo(everybody), *rendezvous);
    }
    const auto wanted = island_groups(options, meeting.rank);
    std::vector<Group> groups;
    for (const auto& [name, members] : wanted) groups.push_back(group_of(name, members));
    if (meeting.directory.empty()) exchange_ports(groups);
    // Sorted by name on every rank, so that none waits for another in a circle.
    for (auto group = groups.begin(); const auto& [name, members] : wanted) {
        auto place = meet(*group);
        groups_[name] = make_gloo_collective(gloo(*group++), *place);
    }
}

IslandLinks IslandConnections::links() const {
    IslandLinks links{.rank = meeting_.rank,
                      .world = world_.get(),
                      .messages = messages_.get(),
                      .groups = {},
                      .step_messages = step_messages_.get()};
    for (const auto& [name, group] : groups_) links.groups[name] = group.get();
    return links;
}

std::unique_ptr<Rendezvous> IslandConnections::meet(const Group& group) const {
    if (!meeting_.directory.empty())
        return make_file_rendezvous(meeting_.directory / group.name, Rank(group.index), group.size);
    return make_tcp_rendezvous(group.host, group.port, Rank(group.index), group.size);
}

IslandConnections::Group IslandConnections::group_of(const std::string& name,
                                                     const std::vector<Rank>& members) const {
    const auto here = std::ranges::find(members, meeting_.rank);
    ATOLL_CHECK(here != members.end(), "rank {} is not in its group {}", meeting_.rank, name);
    return {fmt::format("{}_from_{}", name, members.front()),
            static_cast<std::int32_t>(here - members.begin()),
            static_cast<std::int32_t>(members.size()),
            {},
            0};
}

void IslandConnections::exchange_ports(std::vector<Group>& groups) {
    std::string announced;
    for (const Group& group : groups)
        if (group.index == 0)
            announced += fmt::format("{} {} {}\n", group.name, address_, free_tcp_port(address_));
    for (const std::string& text : world_->all_gather(announced, meeting_.timeout)) {
        std::istringstream lines(text);
        std::string name;
        std::string host;
        std::uint16_t port = 0;
        while (lines >> name >> host >> port)
            for (Group& group : groups)
                if (group.name == name) {
                    group.host = host;
                    group.port = port;
                }
    }
    for (const Group& group : groups)
        ATOLL_CHECK(group.port != 0, "nobody announced where group {} meets", group.name);
}

}  // namespace atl
