// What the subverbs of `atoll simulate` share. Every line they print for people belongs to a simulation and the first
// says so; with --json the object has "simulated": true.
#pragma once

#include "cli/verbs.h"

namespace atl::cli {

void add_simulate_geo(CLI::App& simulate, Context& context);
void add_simulate_strands(CLI::App& simulate, Context& context);

}  // namespace atl::cli
