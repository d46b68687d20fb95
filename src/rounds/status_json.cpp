#include <nlohmann/json.hpp>

#include "rounds/messages.h"

namespace atl {

std::string status_json(const View& view) {
    nlohmann::json sites = nlohmann::json::array();
    for (const SiteView& site : view.sites) {
        sites.push_back({{"site", site.info.name},
                         {"standing", name(site.standing)},
                         {"phase", name(site.phase)},
                         {"round", site.round.value()},
                         {"address", site.info.address},
                         {"reason", site.reason}});
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
