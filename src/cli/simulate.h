// What the subverbs of `atoll simulate` share. Every line they print for people belongs to a simulation and the first
// says so; with --json the object has "simulated": true.
#pragma once

#include "cli/verbs.h"

namespace atl::cli {

void add_simulate_geo(CLI::App& simulate, Context& context);

// Of an option that takes a rate: "200mbit", "1.5Gbit", or a plain number of bit/s.
CLI::AsNumberWithUnit bit_rate();

}  // namespace atl::cli
