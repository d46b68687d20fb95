#include "cli/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace atl {
namespace {

struct Names {
    const char* rank;
    const char* ranks;
    const char* local_rank;
    const char* local_ranks;  // may be missing: then all are taken for local on one machine
    const char* machines;     // the same
    std::vector<const char*> launch;
};

const std::vector<Names>& launchers() {
    static const std::vector<Names> all = {
        {"RANK",
         "WORLD_SIZE",
         "LOCAL_RANK",
         "LOCAL_WORLD_SIZE",
         nullptr,
         {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
        {"OMPI_COMM_WORLD_RANK",
         "OMPI_COMM_WORLD_SIZE",
         "OMPI_COMM_WORLD_LOCAL_RANK",
         "OMPI_COMM_WORLD_LOCAL_SIZE",
         nullptr,
         {"PMIX_NAMESPACE"}},
        {"SLURM_PROCID",
         "SLURM_STEP_NUM_TASKS",
         "SLURM_LOCALID",
         nullptr,
         "SLURM_STEP_NUM_NODES",
         {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
    };
    return all;
}

std::optional<std::int32_t> number(const Environment& environment, const char* name) {
    const char* text = name == nullptr ? nullptr : environment(name);
    if (text == nullptr) return std::nullopt;
    std::int32_t value = 0;
    const char* end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, value);
    if (error != std::errc() || rest != end || value < 0)
        throw UserError(fmt::format("[run] {} = \"{}\": the launcher must give a number", name, text));
    return value;
}

// As a file name. The same job may launch again in one run directory, hence the process too.
std::string launch_name(const Environment& environment, const Names& names, std::int64_t launcher) {
    std::string joined = fmt::format("launch-{}", launcher);
    for (const char* part : names.launch)
        if (const char* text = environment(part)) joined += "-" + std::string(text);
    std::ranges::replace_if(
        joined, [](unsigned char letter) { return std::isalnum(letter) == 0 && letter != '-'; }, '_');
    return joined;
}

std::int32_t meeting_port(const Environment& environment, const Names& names, std::int32_t ranks) {
    const auto port = number(environment, "MASTER_PORT");
    if (environment("MASTER_ADDR") == nullptr || !port)
        throw UserError(
            fmt::format("[run] {} = {}: ranks on several machines meet at MASTER_ADDR:MASTER_PORT, an "
                        "address of rank 0's "
                        "machine; set both for all ranks",
                        names.ranks, ranks));
    const char* agent = environment("TORCHELASTIC_USE_AGENT_STORE");
    return agent != nullptr && std::string_view(agent) == "True" ? *port + 1 : *port;
}

}  // namespace

std::optional<LaunchedRank> launched_rank(const Environment& environment, std::int64_t launcher) {
    for (const Names& names : launchers()) {
        const auto rank = number(environment, names.rank);
        const auto ranks = number(environment, names.ranks);
        if (!rank || !ranks || *ranks <= 1) continue;
        LaunchedRank launched{.rank = *rank, .ranks = *ranks};
        // Slurm does not say how many ranks are on this machine: as many as on any.
        const std::int32_t machines = std::max(number(environment, names.machines).value_or(1), 1);
        launched.local_ranks =
            number(environment, names.local_ranks).value_or((*ranks + machines - 1) / machines);
        launched.local_rank = number(environment, names.local_rank).value_or(0);
        if (launched.rank >= launched.ranks || launched.local_rank >= launched.local_ranks)
            throw UserError(fmt::format("[run] {} = {} of {} = {}, and place {} of {} on this machine: no such rank",
                                        names.rank, launched.rank, names.ranks, launched.ranks,
                                        launched.local_rank, launched.local_ranks));
        if (launched.local_ranks == launched.ranks) {
            launched.meeting = launch_name(environment, names, launcher);
        } else {
            launched.meeting_port = meeting_port(environment, names, launched.ranks);
        }
        return launched;
    }
    return std::nullopt;
}

}  // namespace atl
