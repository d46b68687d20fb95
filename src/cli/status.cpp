// `atoll status RUN_DIR|ADDRESS`: what a running coordinator says about its run.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "coordinator/client.h"
#include "core/error.h"
#include "metrics/progress.h"

namespace atl::cli {
namespace {

constexpr Milliseconds kStatusPatience{2'000};

struct StatusOptions {
    std::string where;
    bool json = false;
};

void print_cost(const nlohmann::json& cost) {
    fmt::print(
        "    round {}: {} steps of {:.4f} s, {:.3f} s beside them ({:.3f} s of exchange): {:.1f} % compute\n",
        cost["round"].get<std::int64_t>(), cost["inner_steps"].get<std::int64_t>(),
        cost["step_seconds"].get<double>(), cost["stall_seconds"].get<double>(),
        cost["exchange_seconds"].get<double>(), 100 * cost["compute_utilization"].get<double>());
    const auto bytes = [](const nlohmann::json& peer, const std::string& key) {
        return human_bytes(peer[key].get<double>());
    };
    for (const auto& peer : cost["peers"]) {
        fmt::print("      {:<14} sent {} ({} on the wire), received {} ({}), round trip {:.1f} ms\n",
                   peer["peer"].get<std::string>(), bytes(peer, "payload_bytes_sent"),
                   bytes(peer, "wire_bytes_sent"), bytes(peer, "payload_bytes_received"),
                   bytes(peer, "wire_bytes_received"), 1e3 * peer["round_trip_seconds"].get<double>());
    }
}

void print_status(const nlohmann::json& status) {
    fmt::print("run {}, round {}, {} steps done, coordinator's term {}\n", status["run"].get<std::string>(),
               status["round"].get<std::int64_t>(), status["steps"].get<std::int64_t>(),
               status["term"].get<std::int64_t>());
    for (const auto& site : status["sites"]) {
        const auto reason = site["reason"].get<std::string>();
        fmt::print("  {:<16} {:<8} {:<11} round {}{}\n", site["site"].get<std::string>(),
                   site["standing"].get<std::string>(), site["phase"].get<std::string>(),
                   site["round"].get<std::int64_t>(), reason.empty() ? "" : ": " + reason);
        if (!site["costs"].empty()) print_cost(site["costs"].back());
    }
    for (const auto& attempt : status["attempts"]) {
        fmt::print("  attempt {}: {}\n", attempt["attempt"].get<std::int64_t>(),
                   attempt["reason"].get<std::string>());
    }
    if (!status["ending"].is_null())
        fmt::print("the run ends: {}\n", status["ending"]["reason"].get<std::string>());
}

int show_status(const Context& context, const StatusOptions& options) {
    const std::string answer = fetch_status(coordinator_address(context, options.where), kStatusPatience);
    if (options.json) {
        fmt::print("{}\n", answer);
        return kSuccess;
    }
    const nlohmann::json status = nlohmann::json::parse(answer, nullptr, false);
    if (status.is_discarded())
        throw CorruptDataError("[status] what answers there is no coordinator of this release");
    print_status(status);
    return kSuccess;
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
    const auto options = std::make_shared<StatusOptions>();
    CLI::App& verb = *app.add_subcommand("status", "Show what a running coordinator says about its run");
    verb.add_option("where", options->where, "Run directory, or HOST:PORT of the coordinator")->required();
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback([&context, options] {
        context.command = [&context, options] { return show_status(context, *options); };
    });
}

}  // namespace atl::cli
