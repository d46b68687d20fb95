// `atoll status RUN_DIR|ADDRESS`: what a running coordinator says about its run.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "coordinator/client.h"
#include "core/error.h"

namespace atl::cli {
namespace {

constexpr Milliseconds kPatience{2'000};

struct StatusOptions {
    std::string where;
    bool json = false;
};

std::string address_of(const Context& context, const std::string& where) {
    const std::filesystem::path file = std::filesystem::path(where) / "coordinator.address";
    if (context.files->exists(file)) return context.files->read_text(file);
    if (context.files->exists(where)) {
        throw UserError(
            fmt::format("[status] {} holds no coordinator.address: no run was started in it", where));
    }
    if (where.find(':') == std::string::npos) {
        throw UserError(fmt::format("[status] {} is neither a run directory nor HOST:PORT", where));
    }
    return where;
}

void print_for_people(const nlohmann::json& status) {
    fmt::print("run {}, round {}, {} steps done, coordinator's term {}\n", status["run"].get<std::string>(),
               status["round"].get<std::int64_t>(), status["steps"].get<std::int64_t>(),
               status["term"].get<std::int64_t>());
    for (const auto& site : status["sites"]) {
        const auto reason = site["reason"].get<std::string>();
        fmt::print("  {:<16} {:<8} {:<11} round {}{}\n", site["site"].get<std::string>(),
                   site["standing"].get<std::string>(), site["phase"].get<std::string>(),
                   site["round"].get<std::int64_t>(), reason.empty() ? "" : ": " + reason);
    }
    for (const auto& attempt : status["attempts"]) {
        fmt::print("  attempt {}: {}\n", attempt["attempt"].get<std::int64_t>(),
                   attempt["reason"].get<std::string>());
    }
    if (!status["ending"].is_null())
        fmt::print("the run ends: {}\n", status["ending"]["reason"].get<std::string>());
}

int show_status(const Context& context, const StatusOptions& options) {
    const std::string answer = fetch_status(address_of(context, options.where), kPatience);
    if (options.json) {
        fmt::print("{}\n", answer);
        return kSuccess;
    }
    const nlohmann::json status = nlohmann::json::parse(answer, nullptr, false);
    if (status.is_discarded())
        throw CorruptDataError("[status] what answers there is no coordinator of this release");
    print_for_people(status);
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
