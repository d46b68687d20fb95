#include <nlohmann/json.hpp>

#include "rounds/messages.h"

namespace atl {
namespace {

nlohmann::json cost_json(const View& view, const RoundCost& cost) {
    nlohmann::json peers = nlohmann::json::array();
    for (const PeerTraffic& peer : cost.peers) {
        peers.push_back({{"peer", view.called(peer.peer)},
                         {"payload_bytes_sent", peer.payload_bytes_sent},
                         {"payload_bytes_received", peer.payload_bytes_received},
                         {"wire_bytes_sent", peer.wire_bytes_sent},
                         {"wire_bytes_received", peer.wire_bytes_received},
                         {"round_trip_seconds", peer.round_trip_seconds}});
    }
    return {{"round", cost.round.value()},
            {"inner_steps", cost.inner_steps},
            {"step_seconds", cost.step_seconds / static_cast<double>(cost.inner_steps)},
            {"round_seconds", cost.round_seconds},
            {"exchange_seconds", cost.exchange_seconds},
            {"stall_seconds", cost.stall_seconds()},
            {"compute_utilization", cost.compute_utilization()},
            {"raw_bytes_sent", cost.raw_bytes_sent},
            {"peers", peers}};
}

}  // namespace

std::string status_json(const View& view, const RoundCosts& costs) {
    nlohmann::json sites = nlohmann::json::array();
    for (const SiteView& site : view.sites) {
        nlohmann::json rounds = nlohmann::json::array();
        if (const auto found = costs.find(site.info.id); found != costs.end())
            for (const RoundCost& cost : found->second) rounds.push_back(cost_json(view, cost));
        sites.push_back({{"site", site.info.name},
                         {"standing", name(site.standing)},
                         {"phase", name(site.phase)},
                         {"round", site.round.value()},
                         {"address", site.info.address},
                         {"reason", site.reason},
                         {"costs", rounds}});
    }
    nlohmann::json status = {
        {"run", view.run_id},
        {"term", view.term.value()},
        {"round", view.round.value()},
        {"steps", view.commits.empty() ? 0 : view.commits.front().last_step.value()},
        {"state_hash", view.state_before ? nlohmann::json(view.state_before->hex()) : nullptr},
        {"sites", sites},
        {"plan", nullptr},
        {"attempts", nlohmann::json::array()},
        {"ending", nullptr}};
    if (view.plan) {
        status["plan"] = {{"first_step", view.plan->first_step.value()},
                          {"inner_steps", view.plan->inner_steps()},
                          {"codec", view.plan->numbers.codec},
                          {"outer_lr", view.plan->numbers.outer_lr},
                          {"outer_momentum", view.plan->numbers.outer_momentum},
                          {"fragments", view.plan->fragments.size()},
                          {"fragments_committed", view.open_commits.size()},
                          {"reason", view.plan->reason}};
    }
    for (const AttemptPlan& attempt : view.attempts) {
        nlohmann::json contributors = nlohmann::json::array();
        for (const Contributor& contributor : attempt.contributors)
            contributors.push_back(contributor.site.value());
        status["attempts"].push_back({{"fragment", attempt.fragment.value()},
                                      {"attempt", attempt.attempt.value()},
                                      {"contributors", contributors},
                                      {"reason", attempt.reason}});
    }
    if (view.ending) {
        status["ending"] = {{"exit_code", view.ending->exit_code}, {"reason", view.ending->reason}};
    }
    return status.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace atl
