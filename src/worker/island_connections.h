// IslandConnections: everything that joins one rank to the others of its island: a group for orders and sums between
// steps, the groups of the step's collectives, and messages, apart for steps and for what is between them.
//
// On one machine ranks meet in a directory that all see; elsewhere at MASTER_ADDR:MASTER_PORT, and smaller groups at
// a port of their first member, which it announces to all.
// Threads: one caller; the objects have their own. Errors: CommError naming who did not come; UserError for a missing
// address. Cost: one full mesh of connections a group.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "comm/island/rendezvous.h"
#include "island/island_options.h"

namespace atl {

struct IslandMeeting {
    Rank rank;
    std::int32_t ranks = 1;
    std::filesystem::path directory;  // a fresh one that all ranks see; empty: MASTER_ADDR and MASTER_PORT
    Milliseconds timeout{30'000};
};

class IslandConnections {
  public:
    // Joins the ranks as an island with these options needs it; an island of one rank needs nothing.
    IslandConnections(const IslandMeeting& meeting, const IslandOptions& options);

    IslandLinks links() const;
    IslandCollective* orders() const { return world_.get(); }  // null for one rank

  private:
    struct Group {
        std::string name;  // of the meeting: the program's name for it, and its first member
        std::int32_t index = 0;
        std::int32_t size = 1;
        std::string host;  // where its first member listens; not needed in a directory
        std::uint16_t port = 0;
    };
    std::unique_ptr<Rendezvous> meet(const Group& group) const;
    Group group_of(const std::string& name, const std::vector<Rank>& members) const;
    // Tells everybody the ports of the groups that begin with this rank, and fills in those of the others.
    void exchange_ports(std::vector<Group>& groups);

    IslandMeeting meeting_;
    std::string address_;  // of this rank
    std::unique_ptr<IslandCollective> world_;
    std::unique_ptr<PointToPoint> messages_;
    std::unique_ptr<PointToPoint> step_messages_;
    std::map<std::string, std::unique_ptr<IslandCollective>> groups_;
};

}  // namespace atl
