#include "cli/run_costs.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "coordinator/client.h"
#include "coordinator/store.h"
#include "core/error.h"

namespace atl::cli {
namespace {

constexpr Milliseconds kCostPatience{500};

RoundCost cost_of(const nlohmann::json& json) {
    RoundCost cost{.round = Round(json.at("round").get<std::int64_t>()), .peers = {}};
    json.at("inner_steps").get_to(cost.inner_steps);
    cost.step_seconds = json.at("step_seconds").get<double>() * static_cast<double>(cost.inner_steps);
    json.at("round_seconds").get_to(cost.round_seconds);
    json.at("exchange_seconds").get_to(cost.exchange_seconds);
    json.at("raw_bytes_sent").get_to(cost.raw_bytes_sent);
    for (const auto& peer : json.at("peers")) {
        PeerTraffic& traffic = cost.peers.emplace_back();
        peer.at("payload_bytes_sent").get_to(traffic.payload_bytes_sent);
        peer.at("payload_bytes_received").get_to(traffic.payload_bytes_received);
        peer.at("round_trip_seconds").get_to(traffic.round_trip_seconds);
    }
    return cost;
}

RunCosts of_status(const std::string& text) {
    try {
        const nlohmann::json status = nlohmann::json::parse(text);
        RunCosts result;
        std::int32_t id = 0;
        for (const auto& site : status.at("sites")) {
            const SiteId number(id++);
            for (const auto& cost : site.at("costs")) result.costs[number].push_back(cost_of(cost));
        }
        if (!status.at("plan").is_null()) status.at("plan").at("codec").get_to(result.codec);
        return result;
    } catch (const nlohmann::json::exception&) {
        throw CorruptDataError("[tune] what answers there is no coordinator of this release");
    }
}

RunCosts of_record(const CoordinatorRecord& record) {
    RunCosts result{.costs = record.costs, .codec = {}};
    if (!record.rounds.empty()) result.codec = record.rounds.rbegin()->second.plan.numbers.codec;
    return result;
}

}  // namespace

RunCosts run_costs(const Context& context, const std::filesystem::path& run_directory,
                   const std::string& run_id, Milliseconds patience) {
    const auto address = run_directory / "coordinator.address";
    const auto database = run_directory / "coordinator.sqlite";
    const SystemClock clock;
    const Deadline deadline = clock.after(patience);
    for (;;) {
        if (context.files->exists(address)) {
            try {
                return of_status(fetch_status(context.files->read_text(address), kCostPatience));
            } catch (const CommError&) {
                // It has ended and left its database unlocked, or it has just started: then nobody else may look.
            }
        }
        if (!context.files->exists(database))
            throw WorldError(
                fmt::format("[tune] {}: no coordinator runs, and no database of one is here: call this "
                            "where the coordinator ran",
                            run_directory.string()));
        try {
            return of_record(CoordinatorStore(database, run_id).load());
        } catch (const StoreInUse&) {
            if (clock.now() >= deadline)
                throw WorldError(fmt::format(
                    "[tune] the coordinator of {} has its database open, but does not answer: try again "
                    "when the run has begun",
                    run_directory.string()));
        }
    }
}

}  // namespace atl::cli
