// `atoll set RUN_DIR|ADDRESS KEY=VALUE...`: changes settings of a run that goes on.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "coordinator/client.h"
#include "core/error.h"

namespace atl::cli {
namespace {

constexpr Milliseconds kSetPatience{5'000};

struct SetOptions {
    std::string where;
    std::vector<std::string> assignments;
    bool json = false;
};

int set(const Context& context, const SetOptions& options) {
    const std::string address = coordinator_address(context, options.where);
    const std::string text = request_changes(address, options.assignments, kSetPatience);
    const nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
    if (!answer.is_object() || !answer.contains("accepted"))
        throw CorruptDataError("[set] what answers there is no coordinator of this release");
    if (!answer["accepted"].get<bool>())
        throw UserError(answer.at("problems").get<std::vector<std::string>>());
    if (options.json) {
        fmt::print("{}\n", text);
        return kSuccess;
    }
    if (answer["changes"].empty()) fmt::print("nothing to change: the run has these values already\n");
    for (const auto& [key, change] : answer["changes"].items()) {
        fmt::print("from round {} on every site: {} {} → {}\n", answer["from_round"].get<std::int64_t>(), key,
                   change["before"].get<std::string>(), change["after"].get<std::string>());
    }
    return kSuccess;
}

}  // namespace

void add_set(CLI::App& app, Context& context) {
    const auto options = std::make_shared<SetOptions>();
    CLI::App& verb = *app.add_subcommand("set", "Change settings of a running run, on every site at once");
    verb.add_option("where", options->where, "Run directory, or HOST:PORT of the coordinator")->required();
    verb.add_option("settings", options->assignments, "What changes from the next round on")
        ->required()
        ->type_name("TABLE.KEY=VALUE");
    verb.add_flag("--json", options->json, "Print one JSON object");
    verb.callback(
        [&context, options] { context.command = [&context, options] { return set(context, *options); }; });
}

}  // namespace atl::cli
