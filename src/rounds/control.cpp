#include "rounds/control.h"

#include <fmt/format.h>

#include "core/check.h"

namespace atl {

std::string_view name(ComplaintKind kind) {
    switch (kind) {
        case ComplaintKind::missing:
            return "missing";
        case ComplaintKind::undecodable:
            return "undecodable";
        case ComplaintKind::non_finite:
            return "non-finite";
    }
    ATOLL_CHECK(false, "complaint {}", int(kind));
}

std::int64_t RoundCost::payload_bytes_sent() const {
    std::int64_t bytes = 0;
    for (const PeerTraffic& peer : peers) bytes += peer.payload_bytes_sent;
    return bytes;
}

std::int64_t RoundCost::payload_bytes_received() const {
    std::int64_t bytes = 0;
    for (const PeerTraffic& peer : peers) bytes += peer.payload_bytes_received;
    return bytes;
}

const SiteView* View::find(SiteId site) const {
    for (const SiteView& view : sites) {
        if (view.info.id == site) return &view;
    }
    return nullptr;
}

bool View::name_is_taken(const SiteInfo& own) const {
    const SiteView* known = find(own.id);
    return known != nullptr && known->info.incarnation != own.incarnation && !is_gone(known->standing);
}

std::string View::called(SiteId site) const {
    const SiteView* known = find(site);
    return known != nullptr ? known->info.name : fmt::format("{}", site);
}

const std::vector<Commit>& View::commits_of(Round which) const {
    static const std::vector<Commit> kNone;
    if (which == round) return open_commits;
    return !commits.empty() && commits.front().round == which ? commits : kNone;
}

const AttemptPlan* View::attempt(FragmentId fragment) const {
    for (const AttemptPlan& plan : attempts) {
        if (plan.fragment == fragment) return &plan;
    }
    return nullptr;
}

}  // namespace atl
