// The links of an island whose ranks are threads of this process.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/island/local_collective.h"
#include "island/island_programs.h"

namespace atl::test {

class LocalIsland {
  public:
    explicit LocalIsland(const IslandOptions& options) : size_(options.parallel.ranks()) {
        world_ = make_local_collectives(size_, "world");
        messages_ = make_local_point_to_point(size_, "messages");
        step_messages_ = make_local_point_to_point(size_, "step_messages");
        for (std::int32_t rank = 0; rank < size_; ++rank)
            for (const auto& [name, members] : island_groups(options, Rank(rank))) {
                auto& group = groups_[{name, members}];
                if (group.empty())
                    group = make_local_collectives(static_cast<std::int32_t>(members.size()), name);
            }
    }

    std::int32_t size() const { return size_; }

    IslandLinks links(std::int32_t rank) const {
        const auto place = static_cast<std::size_t>(rank);
        IslandLinks links{.rank = Rank(rank),
                          .world = world_[place].get(),
                          .messages = messages_[place].get(),
                          .groups = {},
                          .step_messages = step_messages_[place].get()};
        for (const auto& [key, group] : groups_) {
            const auto& [name, members] = key;
            const auto here = std::ranges::find(members, Rank(rank));
            if (here != members.end())
                links.groups[name] = group[static_cast<std::size_t>(here - members.begin())].get();
        }
        return links;
    }

    // As when a rank's process dies: its ends of everything are gone.
    void leave(std::int32_t rank) {
        const auto place = static_cast<std::size_t>(rank);
        world_[place].reset();
        messages_[place].reset();
        step_messages_[place].reset();
        for (auto& [key, group] : groups_) {
            const auto& members = key.second;
            const auto here = std::ranges::find(members, Rank(rank));
            if (here != members.end()) group[static_cast<std::size_t>(here - members.begin())].reset();
        }
    }

  private:
    std::int32_t size_;
    std::vector<std::unique_ptr<IslandCollective>> world_;
    std::vector<std::unique_ptr<PointToPoint>> messages_;
    std::vector<std::unique_ptr<PointToPoint>> step_messages_;
    std::map<std::pair<std::string, std::vector<Rank>>, std::vector<std::unique_ptr<IslandCollective>>>
        groups_;
};

}  // namespace atl::test
