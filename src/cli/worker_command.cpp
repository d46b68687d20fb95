#include "cli/worker_command.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "core/child_process.h"
#include "core/error.h"
#include "core/temporary_directory.h"

namespace atl::cli {

namespace {

constexpr const char* kHostDevice = "wan0";

ChildOptions worker(const std::vector<std::string>& arguments) {
    const auto program = program_directory() / "atoll-worker";
    if (!std::filesystem::exists(program))
        throw UserError(
            fmt::format("{} is missing: this build has no libtorch (-DATOLL_TORCH=OFF)", program.string()));
    ChildOptions options{.command = {program.string()}};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    return options;
}

int code_of(const ExitStatus& status) {
    if (status.signal != 0) throw WorldError(fmt::format("atoll-worker ended with {}", to_string(status)));
    return status.code > kWrongInput ? kRunFailed : status.code;
}

int run(const ChildOptions& options) {
    ChildProcess child(options);
    for (;;)
        if (const auto status = child.wait_for(Milliseconds(60'000))) return code_of(*status);
}

}  // namespace

int run_worker(const std::vector<std::string>& arguments) {
    return run(worker(arguments));
}

int run_sister(std::vector<std::string> command) {
    const auto program = program_directory() / command.front();
    if (!std::filesystem::exists(program))
        throw UserError(fmt::format("{} is missing: build the target {}", program.string(), command.front()));
    command.front() = program.string();
    return run({.command = command});
}

int run_island(const std::vector<std::string>& arguments, std::int64_t ranks, std::int64_t threads,
               const std::string& hosts) {
    const TemporaryDirectory meeting("island");
    const auto processors = allowed_processors();
    std::vector<ChildProcess> children;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        ChildOptions options = worker(arguments);
        options.command.insert(options.command.end(), {"--rendezvous", meeting.path().string()});
        options.environment = {{"RANK", std::to_string(rank)},
                               {"LOCAL_RANK", std::to_string(rank)},
                               {"WORLD_SIZE", std::to_string(ranks)}};
        if (!hosts.empty()) {
            const std::string host = hosts + std::to_string(rank);
            options.command.insert(options.command.begin(), {"ip", "netns", "exec", host});
            options.environment["GLOO_SOCKET_IFNAME"] = kHostDevice;
        }
        if (ranks * threads <= static_cast<std::int64_t>(processors.size()))
            options.processors.assign(processors.begin() + rank * threads,
                                      processors.begin() + (rank + 1) * threads);
        children.emplace_back(options);
    }
    // Ranks notice one another's end, so waiting for each in turn is enough; the destructors end what is left.
    for (auto& child : children)
        for (;;)
            if (const auto status = child.wait_for(Milliseconds(60'000))) {
                if (const int code = code_of(*status); code != kSuccess) return code;
                break;
            }
    return kSuccess;
}

}  // namespace atl::cli
