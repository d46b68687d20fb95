// What the rounds of a run have cost, from the coordinator if it runs, else from its database.
//
// Errors: WorldError if neither is there, or the coordinator has its database open and does not answer in time;
// CorruptDataError.
#pragma once

#include <filesystem>
#include <string>

#include "cli/command.h"
#include "core/clock.h"
#include "rounds/coordinator_state.h"

namespace atl::cli {

struct RunCosts {
    RoundCosts costs;
    std::string codec;  // of the newest round; empty: no round is known
};
RunCosts run_costs(const Context& context, const std::filesystem::path& run_directory,
                   const std::string& run_id, Milliseconds patience = Milliseconds(10'000));

}  // namespace atl::cli
